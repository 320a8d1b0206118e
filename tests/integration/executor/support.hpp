// What the tests of the task runner share.
#pragma once

#include "troupe/actors/task_runner.hpp"

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace executor_test {

using namespace troupe::cluster;

/// For every wait: far more than a slow machine needs.
constexpr std::chrono::seconds deadline{120};

/// A directory that is gone, with all it holds, when the object is.
class temporary_directory {
public:
  temporary_directory();
  ~temporary_directory();
  temporary_directory(const temporary_directory&) = delete;

  const std::filesystem::path& path() const { return path_; }

private:
  std::filesystem::path path_;
};

/// Waits until `condition` holds.
/// @returns whether it did before the deadline.
bool eventually(const std::function<bool()>& condition);

/// How a task came out.
struct outcome {
  bool started = false;
  std::optional<task_failed> failed;
  std::optional<task_ended> ended;
};

/// All bytes of `output`.
std::string text_of(const captured_output& output);

/// Writes a file that `chmod` makes of mode `mode`.
void write_file(const std::filesystem::path& file, std::string_view content, unsigned mode);

/// A runner with a spool of its own. Checks in the end that no process and no file is left.
class lab {
public:
  lab();
  ~lab();

  task_runner& runner() { return *runner_; }
  const std::filesystem::path& spool() const { return spool_.path(); }
  const std::filesystem::path& scratch() const { return scratch_.path(); }

  /// PATH, and a mark by which processes of this lab's tasks are recognised.
  std::vector<std::string> environment() const;

  /// Starts `argv` with `environment()`. @returns the task's number.
  uint64_t start(std::vector<std::string> argv);

  /// Starts `sh -c script`; in it, $1 is the scratch directory.
  uint64_t start_script(const std::string& script);

  /// Starts `launch` with a number of this lab's choice.
  uint64_t start(task_launch launch);

  /// Takes events until task `id` has failed or ended.
  outcome& finish(uint64_t id);

  /// Takes events until `condition` holds.
  bool take_events_until(const std::function<bool()>& condition);

  outcome run(std::vector<std::string> argv) { return std::move(finish(start(std::move(argv)))); }
  outcome run_script(const std::string& script) { return std::move(finish(start_script(script))); }
  outcome run(task_launch launch) { return std::move(finish(start(std::move(launch)))); }

  /// Waits until a task has made the file `name` in the scratch directory.
  bool wait_for_file(const std::string& name) const;

  /// Processes, other than zombies, that carry this lab's mark.
  std::vector<pid_t> processes() const;

  std::map<uint64_t, outcome> outcomes;
  std::map<uint64_t, pid_t> leaders;
  std::optional<guardian_lost> lost;

  /// Ends the runner early.
  void destroy_runner() { runner_.reset(); }

private:
  temporary_directory spool_;
  temporary_directory scratch_;
  std::string mark_;
  uint64_t last_id_ = 0;
  std::unique_ptr<task_runner> runner_;
};

/// The parent of `process`.
pid_t parent_of(pid_t process);

} // namespace executor_test
