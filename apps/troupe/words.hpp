// A line as a shell would split it into words. Plain functions.
#pragma once

#include "troupe/transport/error.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::cli {

/// Splits `line` at blanks. '...' keeps everything; "..." keeps everything but a backslash before
/// `"` or a backslash; a backslash elsewhere keeps the next character; a `#` that begins a word
/// begins a comment.
/// @returns `errc::invalid_argument` for a quote that is not closed or a backslash at the end.
result<std::vector<std::string>> split_words(std::string_view line);

/// A line that is being typed.
struct partial_line {
  std::vector<std::string> before; ///< complete words
  std::string last;                ///< the word that the line ends in; empty behind a blank
  size_t last_begin = 0;           ///< where that word, with its quote, begins in the line
};

/// Splits what stands before the cursor; open quotes are as if closed at its end.
partial_line split_partial(std::string_view line);

} // namespace troupe::cli
