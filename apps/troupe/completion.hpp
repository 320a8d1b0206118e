// What may come next in a line of the shell. Plain functions.
#pragma once

#include "command_line.hpp"

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::cli {

/// The words that may take the place of the last one.
struct completion {
  size_t from = 0;                     ///< where the last word begins in the line
  std::string typed;                   ///< that word
  std::vector<std::string> candidates; ///< all of them begin with it; sorted
};

/// Gives job numbers, or names of actors, that exist now.
using operand_source = std::function<std::vector<std::string>(operand_kind)>;

/// Completes `line`, which ends at the cursor: commands first, then options, or what `operands`
/// knows.
completion complete_line(std::string_view line, std::span<const command_info> commands,
                         const operand_source& operands);

/// What to put in place of the typed word: what all candidates begin with, and a blank when there
/// is only one. Empty when that adds nothing.
std::string completing_text(const completion& found);

/// `words` in columns for a terminal of `width` characters, with a line end.
std::string in_columns(const std::vector<std::string>& words, size_t width);

} // namespace troupe::cli
