// The second process of a measurement: this program again, in another role.
#pragma once

#include <chrono>
#include <string>
#include <sys/types.h>
#include <vector>

namespace bench {

/// Makes the kernel kill this process when the thread that started it ends: nothing outlives a
/// benchmark that was interrupted.
void end_with_parent();

/// How a process ended, or that it did not.
struct ending {
  bool timed_out = false;
  int status = 0; ///< of waitpid; only if not `timed_out`
  std::string text() const;
};

/// A child process with its standard output in a pipe. Killed and reaped when destroyed. Throws
/// `std::runtime_error` with the reason when it cannot be started or does not say what it should.
class child {
public:
  using clock = std::chrono::steady_clock;

  /// Runs `argv[0]`, found in PATH. `inherit`, unless -1, becomes its descriptor 3.
  explicit child(std::vector<std::string> argv, int inherit = -1, bool silence_errors = false);
  ~child();
  child(const child&) = delete;
  child& operator=(const child&) = delete;

  pid_t id() const noexcept { return id_; }

  /// The next line of its output, without its end.
  std::string line(std::chrono::seconds limit);

  /// All of its output up to its end, into `output`.
  ending finish(std::chrono::seconds limit, std::string& output);

private:
  /// @returns false at the end of the output. Throws when the deadline has passed.
  enum class got { something, end, nothing };
  got read_some(clock::time_point deadline);

  pid_t id_ = -1;
  int output_ = -1;
  std::string pending_;
};

/// Path of this program.
std::string this_program();

} // namespace bench
