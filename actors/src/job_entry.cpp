#include "job_entry.hpp"

#include <algorithm>
#include <utility>

namespace troupe::cluster {

job_entry::job_entry(job_id id, job_spec spec, wall_time submitted)
    : id_(id), spec_(std::move(spec)), submitted_(submitted) {
  counters_.queued = spec_.task_count();
}

job_entry::started_task job_entry::start_next(incarnation_id node, wall_time now) {
  uint32_t task = 0;
  if (again_.empty()) {
    task = static_cast<uint32_t>(spec_.tasks().first + records_.size());
    records_.emplace_back();
  } else {
    task = *again_.begin();
    again_.erase(again_.begin());
    ++restarts_;
  }
  auto& r = record_of(task);
  r.node = node;
  r.started = now;
  r.state = run_state::running;
  ++r.attempt;
  --counters_.queued;
  ++counters_.running;
  if (!started_)
    started_ = now;
  return {task, r.attempt};
}

void job_entry::finish(uint32_t task, const task_outcome& outcome, wall_time now) {
  auto& r = record_of(task);
  r.exit_code = outcome.exit_code;
  r.signal = outcome.signal;
  r.elapsed = outcome.elapsed;
  r.stdout_bytes = outcome.stdout_bytes;
  r.stderr_bytes = outcome.stderr_bytes;
  if (!outcome.failure.empty())
    failures_[task] = outcome.failure;
  auto state = outcome.success()   ? run_state::succeeded
               : cancel_requested_ ? run_state::cancelled
                                   : run_state::failed;
  end(task, state, outcome.exit_status(), now);
}

run_state job_entry::lose(uint32_t task, uint32_t retries, const std::string& failure,
                          wall_time now) {
  auto& r = record_of(task);
  if (!cancel_requested_ && r.losses < std::min<uint32_t>(retries, UINT16_MAX)) {
    ++r.losses;
    return queue_again(task);
  }
  task_outcome outcome;
  outcome.failure = failure;
  finish(task, outcome, now);
  return r.state;
}

run_state job_entry::give_back(uint32_t task, wall_time now) {
  if (!cancel_requested_)
    return queue_again(task);
  task_outcome outcome;
  outcome.failure = "its worker left";
  finish(task, outcome, now);
  return record_of(task).state;
}

run_state job_entry::queue_again(uint32_t task) {
  auto& r = record_of(task);
  r.state = run_state::queued;
  --counters_.running;
  ++counters_.queued;
  again_.insert(task);
  return r.state;
}

void job_entry::cancel(wall_time now) {
  cancel_requested_ = true;
  for (auto task : again_) {
    auto& r = record_of(task);
    r.state = run_state::cancelled;
    r.ended = now;
  }
  again_.clear();
  counters_.cancelled += std::exchange(counters_.queued, 0);
  if (ended())
    ended_ = now;
}

run_state job_entry::state() const noexcept {
  if (!ended())
    return started_ ? run_state::running : run_state::queued;
  if (counters_.cancelled != 0)
    return run_state::cancelled;
  return counters_.failed != 0 ? run_state::failed : run_state::succeeded;
}

std::optional<int> job_entry::exit_status() const noexcept {
  switch (state()) {
  case run_state::succeeded:
    return 0;
  case run_state::failed:
    return first_failure_->second;
  case run_state::cancelled:
    return cancelled_exit_status;
  default:
    return std::nullopt;
  }
}

job_info job_entry::info() const {
  job_info out;
  out.id = id_;
  out.name = spec_.name;
  out.user = spec_.user;
  out.state = state();
  out.cancel_requested = cancel_requested_;
  out.tasks = counters_;
  out.restarts = restarts_;
  out.submitted = submitted_;
  out.started = started_;
  out.ended = ended_;
  out.exit_status = exit_status();
  return out;
}

bool job_entry::contains(uint32_t task) const noexcept {
  auto range = spec_.tasks();
  return task >= range.first && task <= range.last;
}

task_info job_entry::info(uint32_t task) const {
  task_info out;
  out.task = task;
  auto position = task - spec_.tasks().first;
  if (position >= records_.size()) {
    out.state = cancel_requested_ ? run_state::cancelled : run_state::queued;
    return out;
  }
  auto& r = records_[position];
  out.state = r.state;
  out.attempt = r.attempt;
  out.incarnation = r.node;
  out.started = r.started;
  if (!is_final(r.state))
    return out;
  out.ended = r.ended;
  out.outcome.exit_code = r.exit_code;
  out.outcome.signal = r.signal;
  out.outcome.stdout_bytes = r.stdout_bytes;
  out.outcome.stderr_bytes = r.stderr_bytes;
  out.outcome.elapsed = r.elapsed;
  if (auto text = failures_.find(task); text != failures_.end())
    out.outcome.failure = text->second;
  return out;
}

job_entry::record& job_entry::record_of(uint32_t task) {
  return records_[task - spec_.tasks().first];
}

void job_entry::end(uint32_t task, run_state state, int exit_status, wall_time now) {
  auto& r = record_of(task);
  r.state = state;
  r.ended = now;
  --counters_.running;
  switch (state) {
  case run_state::succeeded:
    ++counters_.succeeded;
    break;
  case run_state::failed:
    ++counters_.failed;
    if (!first_failure_ || task < first_failure_->first)
      first_failure_ = {task, exit_status};
    break;
  default:
    ++counters_.cancelled;
  }
  if (ended())
    ended_ = now;
}

} // namespace troupe::cluster
