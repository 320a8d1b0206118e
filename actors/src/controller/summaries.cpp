#include "controller/summaries.hpp"

#include <limits>
#include <utility>

namespace troupe::cluster {

namespace {

uint64_t milliseconds_between(wall_time from, wall_time to) {
  auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(to - from).count();
  return passed > 0 ? static_cast<uint64_t>(passed) : 0;
}

} // namespace

job_summary summarize(const job_info& info, wall_time now) {
  job_summary out;
  out.id = info.id;
  out.name = info.name;
  out.user = info.user;
  out.state = to_string(info.state);
  out.tasks = info.tasks.total();
  out.queued = info.tasks.queued;
  out.running = info.tasks.running;
  out.succeeded = info.tasks.succeeded;
  out.failed = info.tasks.failed;
  out.cancelled = info.tasks.cancelled;
  out.restarts = info.restarts;
  out.exit_status = info.exit_status.value_or(0);
  out.waiting = info.waiting;
  out.age_ms = milliseconds_between(info.submitted, now);
  if (info.started)
    out.run_ms = milliseconds_between(*info.started, info.ended.value_or(now));
  return out;
}

task_summary summarize(const task_info& info, wall_time now) {
  task_summary out;
  out.index = info.task;
  out.state = to_string(info.state);
  out.node = info.node;
  out.attempt = info.attempt;
  out.stdout_bytes = info.outcome.stdout_bytes;
  out.stderr_bytes = info.outcome.stderr_bytes;
  if (is_final(info.state) && info.attempt > 0) {
    auto exited = info.outcome.signal == 0 && info.outcome.failure.empty();
    out.exit_code = exited ? info.outcome.exit_code : -1;
    out.signal = info.outcome.signal;
    out.reason = info.outcome.failure;
  }
  if (info.started)
    out.run_ms = milliseconds_between(*info.started, info.ended.value_or(now));
  return out;
}

result<job_spec> to_spec(submit_request request) {
  job_spec spec;
  spec.name = std::move(request.name);
  spec.user = std::move(request.user);
  spec.argv = std::move(request.argv);
  spec.env = std::move(request.env);
  spec.cwd = std::move(request.cwd);
  spec.cpus = request.cpus;
  spec.memory = request.memory;
  if (request.is_array) {
    constexpr auto most = std::numeric_limits<uint32_t>::max();
    if (request.first > most || request.last > most)
      return fail(errc::invalid_argument, "an array index is at most " + std::to_string(most));
    spec.array =
        task_range{static_cast<uint32_t>(request.first), static_cast<uint32_t>(request.last)};
  }
  return spec;
}

submit_request to_request(const job_spec& spec) {
  submit_request out;
  out.name = spec.name;
  out.user = spec.user;
  out.argv = spec.argv;
  out.env = spec.env;
  out.cwd = spec.cwd;
  out.cpus = spec.cpus;
  out.memory = spec.memory;
  out.is_array = spec.array.has_value();
  out.first = spec.tasks().first;
  out.last = spec.tasks().last;
  return out;
}

} // namespace troupe::cluster
