// A real second process for the tests: what it finds when it starts, what it says, how it ends.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace support {

/// How long anything may take before a test fails: the machine may be loaded.
constexpr std::chrono::seconds patience{60};

/// Makes the waits below longer, where the machine is emulated say. Before any process is started.
void be_patient_for(std::chrono::seconds length);

/// Fails the test unless `condition` becomes true in time.
void await(std::string_view what, const std::function<bool()>& condition);

/// Path of the running executable.
std::string this_executable();

/// How a process ended.
struct ending {
  int code = -1;   ///< its exit code, or 128 + signal
  std::string out; ///< all of its standard output that no `line` has taken
  std::string err; ///< its standard error, if it was captured
};

/// What a process finds when it starts.
struct launch {
  std::vector<std::string> argv; ///< `argv[0]` is the program's path
  std::optional<std::vector<std::string>>
      environment;                 ///< all of it (NAME=value); else this process's
  std::filesystem::path directory; ///< empty: this process's
  std::string input;
  int output = -1;             ///< a descriptor to write to instead of being captured
  bool captures_errors = true; ///< else they go to this process's standard error
  bool own_group = false;      ///< in a process group of its own
};

/// Killed and reaped when destroyed. Every wait fails the test when it takes too long.
class child_process {
public:
  explicit child_process(const launch& how);
  ~child_process();
  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;

  pid_t id() const noexcept { return id_; }

  /// What it has said so far.
  std::string out() const;
  std::string err() const;

  /// The next line of its standard output, without its end; waits for it.
  std::string line();

  void signal(int number) const;
  void signal_group(int number) const;

  /// Stops it with SIGSTOP and waits until it stands still; lets it go on.
  void stop() const;
  void go_on() const;

  /// Whether it has not ended yet.
  bool runs();

  /// Kills it with SIGKILL and waits until it is gone.
  void kill();

  /// Waits until it ends by itself.
  ending wait();

private:
  bool reap(int flags);

  pid_t id_ = -1;
  int code_ = -1;
  bool ended_ = false;
  int out_ = -1;
  int err_ = -1;
  size_t taken_ = 0; // bytes of its output, as lines
};

} // namespace support
