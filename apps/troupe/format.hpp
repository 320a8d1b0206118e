// Values as people read them. Plain functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::cli {

/// `text` with every control character spelled out ("\n", "\x1b"), so that names which others chose
/// can neither break a table nor command the terminal. Other UTF-8 is kept.
std::string printable(std::string_view text);

/// Likewise, but line ends and tabs are kept.
std::string printable_lines(std::string_view text);

/// How many columns `text` takes on a terminal: its UTF-8 characters.
size_t display_width(std::string_view text);

/// A length of time, in the two largest units: "0.4s", "12s", "3m05s", "2h04m", "3d04h".
std::string format_age(uint64_t milliseconds);

/// "1 task", "2 tasks".
std::string format_count(uint64_t count, std::string_view noun);

/// `words` joined by blanks, each quoted for a shell where it needs to be.
template <class Range>
std::string join_words(const Range& words);

/// `word` as a shell would need it: in single quotes unless it is plain.
std::string quote_word(std::string_view word);

template <class Range>
std::string join_words(const Range& words) {
  std::string line;
  for (const auto& word : words)
    line += (line.empty() ? "" : " ") + quote_word(word);
  return line;
}

} // namespace troupe::cli
