// A second real process for the tests: this executable, playing a role.
#pragma once

#include <string>
#include <sys/types.h>

namespace conformance {

/// Runs this executable with `--role` and `--argument`; killed and reaped when destroyed.
class process {
public:
  process(const std::string& role, const std::string& argument);
  ~process();
  process(const process&) = delete;
  process& operator=(const process&) = delete;

  /// The next line that it prints, without its end; fails the test when there is none in time.
  std::string line();

  /// Stops it with SIGSTOP and waits until it stands still; or lets it go on.
  void stop();
  void go_on();

  /// Kills it with SIGKILL and waits until it is gone.
  void kill();

  /// Waits until it ends by itself; fails the test when it does not in time.
  /// @returns its wait status.
  int wait();

private:
  pid_t id_ = -1;
  int output_ = -1;
  std::string pending_;
};

} // namespace conformance
