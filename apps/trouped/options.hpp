// The command line of `trouped`: a file, and a flag for every key of it.
#pragma once

#include <filesystem>
#include <optional>
#include <troupe/framework/config.hpp>
#include <vector>

namespace trouped {

struct options {
  std::optional<std::filesystem::path> file;
  std::vector<troupe::setting> flags;
  std::optional<std::filesystem::path> new_key; ///< only make a key file
  bool check_only = false;                      ///< read and check the configuration, run nothing
};

/// Reads the arguments. @returns nothing when the program is to end now (help, version, or a usage
/// error that was shown), with the status in `exit_status`.
std::optional<options> parse(int argc, char** argv, int& exit_status);

} // namespace trouped
