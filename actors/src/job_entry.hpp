// One job and its tasks. Internal.
#pragma once

#include "troupe/actors/job.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace troupe::cluster {

/// The tasks of a job: which are queued, what became of the others. Tasks that were never started
/// cost nothing: they are a range of indices.
class job_entry {
public:
  job_entry(job_id id, job_spec spec, wall_time submitted);

  job_id id() const noexcept { return id_; }
  const job_spec& spec() const noexcept { return spec_; }
  bool has_queued() const noexcept { return counters_.queued != 0; }
  const task_counters& counters() const noexcept { return counters_; }
  bool cancel_requested() const noexcept { return cancel_requested_; }
  bool ended() const noexcept { return counters_.queued == 0 && counters_.running == 0; }

  struct started_task {
    uint32_t task = 0;
    uint32_t attempt = 0; ///< from 1
  };

  /// Takes the first queued task, of which there must be one, and marks it as running.
  started_task start_next(incarnation_id node, wall_time now);

  /// Ends a running task.
  void finish(uint32_t task, const task_outcome& outcome, wall_time now);

  /// The worker of a running task was lost: queues it again, unless the job is being cancelled or
  /// that has happened to the task more than `retries` times; then it ends with `failure`.
  /// @returns its new state.
  run_state lose(uint32_t task, uint32_t retries, const std::string& failure, wall_time now);

  /// The worker of a running task has left in order, without it: queues it again, unless the job is
  /// being cancelled.
  /// @returns its new state.
  run_state give_back(uint32_t task, wall_time now);

  /// Ends all queued tasks as cancelled; those that run are from now on expected to be killed.
  void cancel(wall_time now);

  run_state state() const noexcept;
  std::optional<int> exit_status() const noexcept;

  /// Everything but `waiting`.
  job_info info() const;

  bool contains(uint32_t task) const noexcept;

  /// Everything but `task_info::node`; `task` must be contained.
  task_info info(uint32_t task) const;

private:
  /// A task that was started at least once. Kept small: there may be a million.
  struct record {
    incarnation_id node = 0;
    wall_time started;
    wall_time ended;
    std::chrono::nanoseconds elapsed{0};
    uint64_t stdout_bytes = 0;
    uint64_t stderr_bytes = 0;
    int32_t exit_code = 0;
    int32_t signal = 0;
    uint32_t attempt = 0;
    uint16_t losses = 0; ///< of its workers
    run_state state = run_state::queued;
  };

  record& record_of(uint32_t task);
  run_state queue_again(uint32_t task);
  void end(uint32_t task, run_state state, int exit_status, wall_time now);

  job_id id_;
  job_spec spec_;
  wall_time submitted_;
  std::optional<wall_time> started_;
  std::optional<wall_time> ended_;
  bool cancel_requested_ = false;
  task_counters counters_;
  uint64_t restarts_ = 0;

  std::deque<record> records_;               ///< of the tasks from the first on that were started
  std::map<uint32_t, std::string> failures_; ///< texts of the few tasks that have one
  std::set<uint32_t> again_;                 ///< queued after a worker was lost
  /// The failed task with the lowest index, and its status.
  std::optional<std::pair<uint32_t, int>> first_failure_;
};

} // namespace troupe::cluster
