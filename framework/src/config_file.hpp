// A configuration file, taken apart into settings. Internal.
#pragma once

#include "troupe/framework/config.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace troupe::detail {

/// Something wrong in a file, with its line for sorting; 0 when it concerns no line.
struct file_problem {
  size_t line = 0;
  std::string text; ///< begins with "file:line: "
};

/// A value of a file whose key is known and whose TOML type fits that key.
struct file_setting {
  size_t line = 0;
  setting value;
};

struct file_contents {
  std::vector<file_setting> settings;
  std::vector<file_problem> problems;
};

/// Reads `file`. What cannot be used stands in `problems`.
file_contents read_config_file(const std::filesystem::path& file);

} // namespace troupe::detail
