// A real second process for the tests.
#pragma once

#include <chrono>
#include <string>
#include <sys/types.h>
#include <vector>

namespace support {

/// How long anything may take before a test fails: the machine may be loaded, or emulated.
constexpr std::chrono::seconds patience{60};

/// Path of the running executable.
std::string this_executable();

/// Runs a program with its standard output in a pipe; killed and reaped when destroyed. Every wait
/// has `patience` as its deadline, after which the test fails.
class child_process {
public:
  /// `argv[0]` is the program's path. `environment` entries are added to this process's own.
  explicit child_process(std::vector<std::string> argv, std::vector<std::string> environment = {});
  ~child_process();
  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;

  /// The next line that it prints, without its end.
  std::string line();

  /// What is left of its output, up to its end.
  std::string rest();

  /// Sends a signal.
  void signal(int number);

  /// Kills it with SIGKILL and waits until it is gone.
  void kill();

  /// Waits until it ends by itself. @returns its wait status.
  int wait();

  pid_t id() const noexcept { return id_; }

private:
  bool read_more(std::chrono::steady_clock::time_point deadline);

  pid_t id_ = -1;
  int output_ = -1;
  std::string pending_;
};

} // namespace support
