// Jobs and their tasks, as they are submitted and as they are shown.
#pragma once

#include "troupe/framework/node_info.hpp"
#include "troupe/transport/error.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::cluster {

/// Names a job; never used again.
using job_id = uint64_t;

/// Wall-clock time of the controller, only for people.
using wall_time = std::chrono::system_clock::time_point;

/// Indices of an array of tasks, both ends included.
struct task_range {
  uint32_t first = 0;
  uint32_t last = 0;

  bool operator==(const task_range&) const = default;
};

constexpr uint64_t max_tasks_per_job = 1'000'000;

/// Most bytes of argv, env and cwd together, with a byte behind each string: what every system can
/// pass to a new process.
constexpr size_t max_command_bytes = size_t{1} << 20;

/// What is to be run. One task, or one for each index of `array`.
struct job_spec {
  std::string name;
  std::vector<std::string> argv; ///< the program first
  std::vector<std::string> env;  ///< "NAME=value": all of it; the worker adds TROUPE_*
  std::string cwd;               ///< absolute; empty for the worker's choice
  uint32_t cpus = 1;             ///< for each task
  uint64_t memory = 0;           ///< bytes for each task; 0: not limited and not accounted
  std::optional<task_range> array;
  std::string user; ///< who submitted it

  /// The indices of its tasks; 0 to 0 without an array.
  task_range tasks() const noexcept { return array.value_or(task_range{}); }
  uint64_t task_count() const noexcept { return uint64_t{tasks().last} - tasks().first + 1; }
};

/// Whether `spec` can be run at all, on whatever cluster.
/// @returns `errc::invalid_argument` with a text that names what is wrong and what is allowed.
status check(const job_spec& spec);

/// The part of `check(job_spec)` that concerns the new process: a program, no zero bytes, variables
/// of the form NAME=value, an absolute directory or none, at most `max_command_bytes`.
/// @returns `errc::invalid_argument` likewise.
status check_command(const std::vector<std::string>& argv, const std::vector<std::string>& env,
                     const std::string& cwd);

/// The life of a job and of each of its tasks. The last three are final.
enum class run_state : uint8_t {
  queued,
  running, ///< of a job: some task has been started
  succeeded,
  failed,
  cancelled,
};

/// "queued", "running", "succeeded", "failed" or "cancelled".
std::string_view to_string(run_state state) noexcept;

constexpr bool is_final(run_state state) noexcept {
  return state != run_state::queued && state != run_state::running;
}

/// How a task ended, as its worker reports it. Untrusted.
struct task_outcome {
  int32_t exit_code = 0; ///< of a program that exited by itself
  int32_t signal = 0;    ///< that ended it; 0 when it exited by itself
  std::string failure; ///< why it could not be run, or what else went wrong; empty when nothing did
  uint64_t stdout_bytes = 0;
  uint64_t stderr_bytes = 0;
  std::chrono::nanoseconds elapsed{0}; ///< by the worker's monotonic clock

  bool success() const noexcept { return exit_code == 0 && signal == 0 && failure.empty(); }

  /// As a shell tells it: 0, the exit code, or 128 + signal; 125 when it could not be run. Always 0
  /// to 255, and 0 only on success.
  int exit_status() const noexcept;
};

/// The exit status of a job that was cancelled: that of a program ended from the keyboard.
constexpr int cancelled_exit_status = 130;

/// One task, for display.
struct task_info {
  uint32_t task = 0;
  run_state state = run_state::queued;
  uint32_t attempt = 0;             ///< how often it was started
  std::string node;                 ///< where it runs or last ran; empty before
  incarnation_id incarnation = 0;   ///< of that node; 0 before
  task_outcome outcome;             ///< when ended
  std::optional<wall_time> started; ///< the last attempt
  std::optional<wall_time> ended;
};

/// How many tasks are in which state. They add up to the number of tasks.
struct task_counters {
  uint64_t queued = 0;
  uint64_t running = 0;
  uint64_t succeeded = 0;
  uint64_t failed = 0;
  uint64_t cancelled = 0;

  bool operator==(const task_counters&) const = default;
  uint64_t total() const noexcept { return queued + running + succeeded + failed + cancelled; }
};

/// One job, for display. What else was submitted is in its `job_spec`.
struct job_info {
  job_id id = 0;
  std::string name;
  std::string user;
  run_state state = run_state::queued;
  bool cancel_requested = false;
  task_counters tasks;
  uint64_t restarts = 0; ///< tasks that were started again because their worker was lost
  wall_time submitted;
  std::optional<wall_time> started; ///< its first task
  std::optional<wall_time> ended;
  /// When ended: 0 if all tasks succeeded, `cancelled_exit_status` if it was cancelled, else the
  /// status of the failed task with the lowest index.
  std::optional<int> exit_status;
  std::string waiting; ///< why queued tasks do not start; empty when none are queued
};

} // namespace troupe::cluster
