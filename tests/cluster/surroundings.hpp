// What the programs under test find on this machine, and leave on it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace cluster_test {

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
