// Runs tasks, which are processes of a user's programs, on a worker.
//
// The runner does not start them itself: a child of its own, the guardian, does. So nothing here
// waits for a program to start, and the guardian kills whatever is left of every task when the
// worker ends, be it by SIGKILL.
//
// A task is a process group with /dev/null as its input and its output in files without a name. It
// ends when the process that was started ends: what it leaves running is killed, daemons in
// sessions of their own included.
#pragma once

#include "troupe/actors/boot_clock.hpp"
#include "troupe/actors/captured_output.hpp"
#include "troupe/transport/error.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <variant>
#include <vector>

namespace troupe::cluster {

/// What to run.
struct task_launch {
  uint64_t id = 0; ///< chosen by the caller; differs from that of every task that has not ended

  /// Program and arguments, passed as they are, without a shell. A program without a slash is
  /// looked for in the PATH of `env` (`/bin:/usr/bin` when that has none).
  std::vector<std::string> argv;

  /// The whole environment, entries of the form `NAME=value`: nothing is inherited from the worker.
  std::vector<std::string> env;

  /// Working directory; empty for the worker's own at the time the runner was created.
  std::string cwd;
};

/// The program runs.
struct task_started {
  uint64_t id = 0;
  pid_t process = 0;     ///< its first process, and the number of its process group
  uint64_t start_ns = 0; ///< CLOCK_MONOTONIC
};

/// What stood in the way of starting a task.
enum class launch_step : uint8_t {
  request,   ///< what was asked for could not be passed on
  fork,      ///< no further process
  output,    ///< connecting standard output and error
  directory, ///< changing to the working directory
  execute,   ///< finding or executing the program
};

/// Lower-case name of `step`.
std::string_view to_string(launch_step step) noexcept;

/// The program never ran; this is the last event of its task.
struct task_failed {
  uint64_t id = 0;
  launch_step step = launch_step::request;
  int error_number = 0; ///< errno
  error reason;         ///< for people; names program, directory and remedy; printable ASCII
};

/// The task is over, and its processes are gone; the last event of its task.
struct task_ended {
  uint64_t id = 0;
  std::optional<int> exit_code; ///< 0 to 255; empty when a signal killed it
  int signal = 0;               ///< the signal that killed it; 0 when it exited
  captured_output standard_output;
  captured_output standard_error;
  uint64_t start_ns = 0;     ///< CLOCK_MONOTONIC
  uint64_t end_ns = 0;       ///< CLOCK_MONOTONIC
  uint64_t user_ns = 0;      ///< processor time of all processes that were waited for
  uint64_t system_ns = 0;    ///< likewise, spent in the kernel
  uint64_t max_resident = 0; ///< bytes of memory of the largest process
  bool lingering = false;    ///< a process of it could not be killed in ten seconds
};

/// The guardian died, or the lease of the tasks ended: all tasks are lost, and their processes have
/// been killed. The last event of a runner; make another one to run further tasks.
struct guardian_lost {
  std::vector<uint64_t> tasks; ///< that had not ended
  error reason;
};

using task_event = std::variant<task_started, task_failed, task_ended, guardian_lost>;

struct task_runner_config {
  std::filesystem::path spool; ///< directory for captured output; must exist

  /// The program `troupe-guardian`; empty: what `find_guardian` finds.
  std::filesystem::path guardian;
};

/// Looks for the guardian: `TROUPE_GUARDIAN` when that is set, else beside the running program,
/// else in `../libexec/troupe` from there.
/// @returns `errc::not_found` with the places that were tried.
result<std::filesystem::path> find_guardian();

/// Runs tasks through a guardian of its own.
///
/// Threads: `start`, `signal`, `extend_lease`, `unfinished` and `stop` from any thread. `poll` and
/// `run_events` from one thread at a time, which may take its turn with `fd` in an event loop or be
/// a helper thread in `run_events`. Events of one task come in order: started, then ended; or
/// failed.
///
/// Needs two file descriptors for each task that has not ended and two for each captured output
/// that is still held. The process must not ignore SIGCHLD, nor reap children it does not know.
class task_runner {
public:
  /// Starts a guardian.
  /// @returns `errc::not_found` when there is no guardian or no spool directory.
  static result<std::unique_ptr<task_runner>> create(task_runner_config config);

  /// Kills all tasks and whatever they left behind, and waits until they are gone: milliseconds, or
  /// up to 15 seconds if a process hangs in the kernel. `run_events` must have returned.
  ~task_runner();

  task_runner(const task_runner&) = delete;
  task_runner& operator=(const task_runner&) = delete;

  /// Asks for a task to be started. Does not wait for that; makes two files in the spool directory.
  /// Requests beyond a few dozen at once are sent on as `poll` sees earlier ones answered.
  /// @returns `errc::invalid_argument` (no program, a zero byte, an entry of the environment
  /// without
  /// '=', more than 64 MiB), `errc::already_exists` (the id), `errc::disconnected` (the guardian is
  /// lost), or what stands in the way of capturing output, with the remedy. Then no event follows.
  [[nodiscard]] status start(const task_launch& what);

  /// Sends signal `number` to all processes in the group of task `id`. Also kills what left the
  /// group when `number` is SIGKILL.
  /// @returns `errc::not_found` when no such task was started or its end has been polled.
  [[nodiscard]] status signal(uint64_t id, int number);

  /// Lets the tasks run until `end`, if that is later than what was said before; then the guardian
  /// kills them all, whatever this process does meanwhile, and starts none. Without any such call
  /// they may run for ever. Does not wait.
  /// @returns `errc::disconnected` when the guardian is lost.
  status extend_lease(boot_clock::time_point end);

  /// Readable when `poll` has something to do. Owned by the runner.
  int fd() const noexcept { return ready_.get(); }

  /// Takes what has happened, without waiting; empty when nothing has.
  std::vector<task_event> poll();

  /// Waits for events and passes them to `deliver`, which may call `start` and `signal`. Returns
  /// after `stop` or after it delivered `guardian_lost`.
  void run_events(const std::function<void(task_event)>& deliver);

  /// Makes `run_events` return soon, now or when it is next called.
  void stop();

  /// How many tasks have neither failed nor ended, as far as `poll` knows.
  size_t unfinished() const;

  /// The guardian's process.
  pid_t guardian() const noexcept;

private:
  struct state;
  explicit task_runner(std::unique_ptr<state> inner);

  std::unique_ptr<state> state_;
  unique_fd ready_; // epoll: the guardian's socket and its process
  unique_fd stop_;  // eventfd
};

} // namespace troupe::cluster
