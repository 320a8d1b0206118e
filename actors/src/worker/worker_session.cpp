#include "worker/worker_session.hpp"

#include "troupe/transport/log.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

namespace troupe::cluster {

namespace {

task_completion end_of(const slot_task& what) {
  task_completion end;
  end.job = what.job;
  end.task = static_cast<uint32_t>(what.task);
  end.attempt = what.attempt;
  return end;
}

} // namespace

worker_session::worker_session(std::shared_ptr<worker_memory> memory, options chosen)
    : memory_(std::move(memory)), options_(std::move(chosen)), slots_(options_.slots) {}

result<std::unique_ptr<worker_session>>
worker_session::create(std::shared_ptr<worker_memory> memory, options chosen,
                       event_handler on_event) {
  task_runner_config config;
  config.spool = chosen.spool;
  auto runner = task_runner::create(std::move(config));
  if (!runner)
    return fail(runner.error());
  std::unique_ptr<worker_session> made{new worker_session{std::move(memory), std::move(chosen)}};
  made->runner_ = std::move(*runner);
  made->memory_->on_lease([runs = made->runner_.get()](boot_clock::time_point end) {
    if (auto extended = runs->extend_lease(end); !extended)
      log_for("worker")->debug("{}", extended.error().text()); // an event is about to tell
  });
  made->events_ = std::thread{[runs = made->runner_.get(), on_event = std::move(on_event)] {
    runs->run_events(
        [&](task_event event) { on_event(std::make_shared<task_event>(std::move(event))); });
  }};
  return made;
}

worker_session::~worker_session() {
  // The controller takes the end of the link for that of the tasks.
  end_tasks();
  memory_->close();
}

void worker_session::end_tasks() {
  if (!runner_)
    return;
  memory_->on_lease(nullptr);
  runner_->stop();
  if (events_.joinable())
    events_.join();
  runner_.reset();
}

void worker_session::start(uint32_t slot, const task_order& order) {
  auto& state = slots_[slot];
  if (state.launch != 0)
    return refuse(slot, {slot, order.attempt, order.job, order.task}, "its slot is taken");
  state = {}; // the controller uses a slot again only when it has all of the output
  state.what = {slot, order.attempt, order.job, order.task};
  state.program = order.argv.empty() ? "" : order.argv.front();
  if (doomed_.erase(state.what) > 0)
    return refuse(slot, state.what, "it was cancelled before it started");
  task_launch launch;
  launch.id = ++last_launch_;
  launch.argv = order.argv;
  launch.env = order.env;
  launch.cwd = order.cwd;
  for (auto& [name, value] : {std::pair{"TROUPE_JOB_ID", std::to_string(order.job)},
                              std::pair{"TROUPE_TASK_INDEX", std::to_string(order.task)},
                              std::pair{"TROUPE_TASK_ATTEMPT", std::to_string(order.attempt)},
                              std::pair{"TROUPE_CPUS", std::to_string(order.cpus)},
                              std::pair{"TROUPE_NODE_ID", options_.node_id}}) {
    auto prefix = std::string{name} + '=';
    std::erase_if(launch.env, [&](const std::string& entry) { return entry.starts_with(prefix); });
    launch.env.push_back(prefix + value);
  }
  if (auto started = runner_->start(launch); !started)
    return refuse(slot, state.what, started.error().text());
  state.launch = launch.id;
  slot_of_.emplace(launch.id, slot);
}

void worker_session::refuse(uint32_t slot, const slot_task& what, const std::string& why) {
  auto end = end_of(what);
  end.exit_code = -1;
  end.failure = why;
  report(slot, end);
}

void worker_session::report(uint32_t slot, const task_completion& end) {
  ++finished_;
  std::vector<std::byte> record(completion_slot_bytes);
  if (auto used = encode_completion_slot(end, record))
    memory_->report(slot, std::move(record));
  else
    log_for("worker")->error("the end of a task cannot be reported: {}", used.error().text());
}

worker_session::slot_state* worker_session::ended_slot(uint64_t launch, uint32_t& slot) {
  auto found = slot_of_.find(launch);
  if (found == slot_of_.end())
    return nullptr;
  slot = found->second;
  slot_of_.erase(found);
  slots_[slot].launch = 0;
  return &slots_[slot];
}

status worker_session::on_event(task_event& event) {
  if (auto failed = std::get_if<task_failed>(&event)) {
    uint32_t slot = 0;
    if (auto state = ended_slot(failed->id, slot))
      refuse(slot, state->what, failed->reason.text());
  } else if (auto ended = std::get_if<task_ended>(&event)) {
    on_ended(*ended);
  } else if (auto lost = std::get_if<guardian_lost>(&event)) {
    return fail(lost->reason);
  }
  return {};
}

/// Exposes a long output until the controller has read it.
result<transport::remote_region> worker_session::keep(captured_output& output, kept_output& where) {
  if (output.size() == 0)
    return transport::remote_region{};
  auto bytes = output.map();
  if (!bytes)
    return fail(bytes.error());
  where.bytes = std::move(*bytes);
  auto region = memory_->expose(where.bytes.bytes());
  if (!region)
    return fail(region.error());
  where.region = std::move(*region);
  return where.region->remote();
}

result<inline_output> worker_session::take_short(const task_ended& ended) {
  inline_output out;
  out.standard_output.resize(ended.standard_output.size());
  out.standard_error.resize(ended.standard_error.size());
  auto read = ended.standard_output.read(0, out.standard_output);
  if (read)
    read = ended.standard_error.read(0, out.standard_error);
  if (!read)
    return fail(read.error());
  return out;
}

void worker_session::on_ended(task_ended& ended) {
  uint32_t slot = 0;
  auto state = ended_slot(ended.id, slot);
  if (!state)
    return;
  auto end = end_of(state->what);
  end.exit_code = ended.exit_code.value_or(-1);
  end.signal = ended.signal;
  end.started = std::chrono::nanoseconds{ended.start_ns};
  end.ended = std::chrono::nanoseconds{std::max(ended.start_ns, ended.end_ns)};
  auto lost = [&](const error& e) { refuse(slot, state->what, "its output is lost: " + e.text()); };
  if (ended.standard_output.size() + ended.standard_error.size() <= max_inline_output) {
    auto output = take_short(ended);
    if (!output)
      return lost(output.error());
    end.output = std::move(*output);
  } else {
    auto standard_output = keep(ended.standard_output, state->outputs[0]);
    if (!standard_output)
      return lost(standard_output.error());
    auto standard_error = keep(ended.standard_error, state->outputs[1]);
    if (!standard_error)
      return lost(standard_error.error());
    end.output = remote_output{*standard_output, *standard_error};
  }
  report(slot, end);
}

void worker_session::kill(const std::vector<slot_task>& tasks) {
  for (auto& what : tasks) {
    if (what.slot >= slots_.size())
      continue;
    auto& state = slots_[what.slot];
    if (state.what == what && state.launch != 0) {
      if (auto killed = runner_->signal(state.launch, SIGKILL); !killed)
        log_for("worker")->debug("kill: {}", killed.error().text());
    } else if (state.what < what || state.what.job != what.job) {
      doomed_.insert(what);
    }
  }
}

void worker_session::forget_output(const slot_task& what) {
  if (what.slot >= slots_.size() || slots_[what.slot].what != what || slots_[what.slot].launch != 0)
    return;
  for (auto& output : slots_[what.slot].outputs)
    output = {};
}

std::string worker_session::describe() const {
  std::string out;
  for (auto& [launch, slot] : slot_of_) {
    auto& state = slots_[slot];
    out += (out.empty() ? "" : "\n") + std::string{"job "} + std::to_string(state.what.job) +
           " task " + std::to_string(state.what.task) + " attempt " +
           std::to_string(state.what.attempt) + ": " + state.program;
  }
  return out.empty() ? "nothing runs" : out;
}

} // namespace troupe::cluster
