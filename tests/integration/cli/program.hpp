// The real `troupe` as a process: its words, its surroundings, what it said and how it ended.
#pragma once

#include "support/child_process.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace cli_test {

using support::ending;

/// A directory of this process that is removed at its end; HOME of the programs under test.
const std::filesystem::path& scratch();

/// This process's environment without what would guide `troupe`, with `more` (NAME=value) on top.
std::vector<std::string> surroundings(const std::vector<std::string>& more);

/// What a program finds when it starts.
struct setting {
  std::vector<std::string> environment = {}; ///< see `surroundings`
  std::string input = {};
  std::string directory = "/";
  int output = -1; ///< a descriptor to write to instead of being captured
};

/// A run of `troupe`.
class program : public support::child_process {
public:
  /// Starts it with these words.
  explicit program(const std::vector<std::string>& words, const setting& with = {});

  /// Waits until it has said `text` on standard error.
  void await_err(const std::string& text) const;
};

/// Runs `troupe` to its end.
ending troupe(const std::vector<std::string>& words, const setting& with = {});

} // namespace cli_test
