// The command line.
#pragma once

#include "row.hpp"

#include <string>
#include <vector>

namespace bench {

struct options {
  std::string rows = "*";    ///< patterns of names, comma-separated
  std::string columns = "*"; ///< the same
  unsigned rounds = 5;
  bool json = false;
  bool list = false;
  context how;

  // How this program starts itself.
  enum class mode { table, measure, serve } what = mode::table;
  std::string row;                    ///< mode::measure
  std::string role;                   ///< mode::serve
  std::vector<std::string> arguments; ///< mode::serve
};

/// Ends the process after --help or a mistake, as CLI11 does.
options parse_command_line(int argc, char** argv);

/// Whether `name` matches one of the comma-separated `patterns`: a part of the name, or one with
/// `*` and `?`.
bool matches(const std::string& name, const std::string& patterns);

} // namespace bench
