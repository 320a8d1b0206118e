#include "format.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace troupe::cli {

namespace {

constexpr unsigned char delete_key = 0x7f;

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

std::string escaped(unsigned char c) {
  switch (c) {
  case '\n':
    return "\\n";
  case '\t':
    return "\\t";
  case '\r':
    return "\\r";
  default:
    std::array<char, 8> text{};
    std::snprintf(text.data(), text.size(), "\\x%02x", c);
    return text.data();
  }
}

std::string escape_controls(std::string_view text, std::string_view kept) {
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    auto c = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F: control characters too, two bytes in UTF-8.
    auto second = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
    if (c == 0xc2 && second >= 0x80 && second <= 0x9f) {
      result += escaped(c) + escaped(static_cast<unsigned char>(second));
      ++i;
    } else if ((c < ' ' && kept.find(text[i]) == kept.npos) || c == delete_key) {
      result += escaped(c);
    } else {
      result += text[i];
    }
  }
  return result;
}

std::string two_units(uint64_t large, char large_unit, uint64_t small, char small_unit) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%llu%c%02llu%c", static_cast<unsigned long long>(large),
                large_unit, static_cast<unsigned long long>(small), small_unit);
  return text.data();
}

} // namespace

std::string printable(std::string_view text) {
  return escape_controls(text, {});
}

std::string printable_lines(std::string_view text) {
  return escape_controls(text, "\n\t");
}

size_t display_width(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !is_continuation(c); }));
}

std::string format_age(uint64_t milliseconds) {
  constexpr uint64_t minute = 60, hour = 60 * minute, day = 24 * hour;
  auto seconds = milliseconds / 1000;
  if (seconds < 10) {
    auto tenths = milliseconds / 100;
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + "s";
  }
  if (seconds < minute)
    return std::to_string(seconds) + "s";
  if (seconds < hour)
    return two_units(seconds / minute, 'm', seconds % minute, 's');
  if (seconds < day)
    return two_units(seconds / hour, 'h', seconds % hour / minute, 'm');
  return two_units(seconds / day, 'd', seconds % day / hour, 'h');
}

std::string format_count(uint64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string{noun} + (count == 1 ? "" : "s");
}

std::string quote_word(std::string_view word) {
  constexpr std::string_view plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=./:,@%";
  if (!word.empty() && word.find_first_not_of(plain) == word.npos)
    return std::string{word};
  std::string quoted = "'";
  for (auto c : word)
    quoted += c == '\'' ? std::string{"'\\''"} : std::string{c};
  return quoted + "'";
}

} // namespace troupe::cli
