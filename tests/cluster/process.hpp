// A program as a real process: its words, its surroundings, what it said and how it ended.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace cluster_test {

/// Fails the test unless `condition` becomes true within the patience of the subject.
void await(std::string_view what, const std::function<bool()>& condition);

/// How a program ended.
struct ending {
  int code = -1; ///< its exit code, or 128 + signal
  std::string out;
  std::string err;
};

/// Killed and reaped when destroyed. Its group is its own.
class process {
public:
  /// `argv[0]` is the program's path; `environment` (NAME=value) is all of it.
  process(std::vector<std::string> argv, std::vector<std::string> environment,
          const std::filesystem::path& directory = "/");
  ~process();
  process(const process&) = delete;
  process& operator=(const process&) = delete;

  pid_t id() const noexcept { return id_; }
  void signal(int number) const;
  void signal_group(int number) const;

  /// What it has said so far.
  std::string out() const;
  std::string err() const;

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
};

/// Processes with the entry `mark` (NAME=value) in the environment that they were started with, and
/// with one that begins with `also`. Zombies have none.
std::vector<pid_t> marked_processes(const std::string& mark, std::string_view also = {});

/// A directory that is removed in the end.
class scratch_directory {
public:
  scratch_directory();
  ~scratch_directory();
  scratch_directory(const scratch_directory&) = delete;
  scratch_directory& operator=(const scratch_directory&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }

private:
  std::filesystem::path path_;
};

/// This process's environment without what would guide the programs under test, with `more` on top.
std::vector<std::string> surroundings(const std::vector<std::string>& more);

std::string read_file(const std::filesystem::path& file);
void write_file(const std::filesystem::path& file, std::string_view content);

} // namespace cluster_test
