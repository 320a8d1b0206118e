// The real `troupe` as a process: its words, its surroundings, what it said and how it ended.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <sys/types.h>
#include <vector>

namespace cli_test {

/// How long anything may take before a test fails: the machine may be loaded, or emulated.
constexpr std::chrono::seconds patience{60};

/// A directory of this process that is removed at its end; HOME of the programs under test.
const std::filesystem::path& scratch();

/// This process's environment without what would guide `troupe`, with `more` (NAME=value) on top.
std::vector<std::string> surroundings(const std::vector<std::string>& more);

/// How a program ended.
struct ending {
  int code = -1; ///< its exit code, or 128 + signal
  std::string out;
  std::string err;
};

/// What a program finds when it starts.
struct setting {
  std::vector<std::string> environment = {}; ///< see `surroundings`
  std::string input = {};
  std::string directory = "/";
  int output = -1; ///< a descriptor to write to instead of being captured
};

/// A run of a program; killed and reaped when destroyed. Every wait fails the test after
/// `patience`.
class program {
public:
  /// Starts `troupe` with these words.
  explicit program(const std::vector<std::string>& words, const setting& with = {});
  ~program();
  program(const program&) = delete;
  program& operator=(const program&) = delete;

  void signal(int number) const;

  /// What it has said so far on standard output and on standard error.
  std::string out() const;
  std::string err() const;

  /// Waits until it has said `text` on standard error.
  void await_err(const std::string& text) const;

  ending wait();

private:
  pid_t id_ = -1;
  int out_ = -1;
  int err_ = -1;
};

/// Runs `troupe` to its end.
ending troupe(const std::vector<std::string>& words, const setting& with = {});

/// Waits for the child `id`. @returns its exit code, or 128 + signal.
int wait_for_end(pid_t id);

} // namespace cli_test
