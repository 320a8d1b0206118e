#include "troupe/framework/units.hpp"

#include <array>
#include <limits>
#include <optional>
#include <span>

namespace troupe {

namespace {

struct unit {
  std::string_view name;
  uint64_t scale;
};

constexpr uint64_t kibi = 1024;
constexpr std::array<unit, 14> size_units{{
    {"", 1},
    {"b", 1},
    {"k", kibi},
    {"kib", kibi},
    {"kb", 1000},
    {"m", kibi* kibi},
    {"mib", kibi* kibi},
    {"mb", 1'000'000},
    {"g", kibi* kibi* kibi},
    {"gib", kibi* kibi* kibi},
    {"gb", 1'000'000'000},
    {"t", kibi* kibi* kibi* kibi},
    {"tib", kibi* kibi* kibi* kibi},
    {"tb", 1'000'000'000'000},
}};

constexpr std::array<unit, 7> duration_units{{
    {"ns", 1},
    {"us", 1'000},
    {"ms", 1'000'000},
    {"s", 1'000'000'000},
    {"m", 60'000'000'000},
    {"min", 60'000'000'000},
    {"h", 3'600'000'000'000},
}};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

std::optional<uint64_t> times(uint64_t lhs, uint64_t rhs) {
  uint64_t product = 0;
  if (__builtin_mul_overflow(lhs, rhs, &product))
    return std::nullopt;
  return product;
}

std::optional<uint64_t> plus(std::optional<uint64_t> lhs, std::optional<uint64_t> rhs) {
  uint64_t sum = 0;
  if (!lhs || !rhs || __builtin_add_overflow(*lhs, *rhs, &sum))
    return std::nullopt;
  return sum;
}

// Takes digits from the front of `text`; nothing when there are none or they exceed 64 bits.
std::optional<uint64_t> take_digits(std::string_view& text) {
  if (text.empty() || !is_digit(text.front()))
    return std::nullopt;
  std::optional<uint64_t> value = 0;
  for (; value && !text.empty() && is_digit(text.front()); text.remove_prefix(1))
    value = plus(times(*value, 10), static_cast<uint64_t>(text.front() - '0'));
  return value;
}

// Takes one number with its unit from the front of `text`; nothing when it is malformed or too
// large.
std::optional<uint64_t> take_quantity(std::string_view& text, std::span<const unit> units) {
  auto whole = take_digits(text);
  if (!whole)
    return std::nullopt;
  uint64_t decimals = 0;
  uint64_t divisor = 1;
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    auto before = text.size();
    auto read = take_digits(text);
    if (!read || before - text.size() > 6)
      return std::nullopt;
    decimals = *read;
    for (auto i = text.size(); i < before; ++i)
      divisor *= 10;
  }
  while (!text.empty() && text.front() == ' ')
    text.remove_prefix(1);
  std::string name;
  for (; !text.empty() && is_letter(text.front()); text.remove_prefix(1))
    name += static_cast<char>(text.front() | 0x20);
  for (auto& candidate : units)
    if (candidate.name == name)
      // Six decimals of the largest unit stay below 64 bits.
      return plus(times(*whole, candidate.scale), decimals * candidate.scale / divisor);
  return std::nullopt;
}

std::string trimmed(std::string text) {
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.')
    text.pop_back();
  return text;
}

// `value / scale` with up to three decimals, rounded down.
std::string with_decimals(uint64_t value, uint64_t scale) {
  auto thousandths = std::to_string(1000 + value % scale * 1000 / scale).substr(1);
  return trimmed(std::to_string(value / scale) + '.' + thousandths);
}

} // namespace

result<uint64_t> parse_size(std::string_view text) {
  auto rest = text;
  auto bytes = take_quantity(rest, size_units);
  if (!bytes || !rest.empty())
    return fail(errc::invalid_argument,
                '\'' + std::string{text} + "' is not a size such as 512MiB, 8GiB or 1073741824");
  return *bytes;
}

std::string format_size(uint64_t bytes) {
  constexpr std::array<std::string_view, 5> names{"B", "KiB", "MiB", "GiB", "TiB"};
  size_t index = 0;
  uint64_t scale = 1;
  while (index + 1 < names.size() && bytes / scale >= kibi) {
    scale *= kibi;
    ++index;
  }
  auto tenths = bytes % scale * 10 / scale;
  auto text = std::to_string(bytes / scale);
  if (tenths != 0)
    text += '.' + std::to_string(tenths);
  return text.append(names[index]);
}

result<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  constexpr uint64_t longest = std::numeric_limits<int64_t>::max();
  auto rest = text;
  std::optional<uint64_t> sum = 0;
  if (text != "0") {
    do {
      sum = plus(sum, take_quantity(rest, duration_units));
      while (!rest.empty() && rest.front() == ' ')
        rest.remove_prefix(1);
    } while (sum && !rest.empty());
  }
  if (!sum || *sum > longest)
    return fail(errc::invalid_argument,
                '\'' + std::string{text} + "' is not a duration such as 500ms, 3s or 1h30m");
  return std::chrono::nanoseconds{static_cast<int64_t>(*sum)};
}

std::string format_duration(std::chrono::nanoseconds length) {
  auto count = length.count();
  // Two's complement negation in unsigned arithmetic also holds for the most negative value.
  auto ns = count < 0 ? 0 - static_cast<uint64_t>(count) : static_cast<uint64_t>(count);
  std::string sign = count < 0 ? "-" : "";
  if (ns == 0)
    return "0s";
  if (ns < 1'000)
    return sign + std::to_string(ns) + "ns";
  if (ns < 1'000'000)
    return sign + with_decimals(ns, 1'000) + "us";
  if (ns < 1'000'000'000)
    return sign + with_decimals(ns, 1'000'000) + "ms";
  auto seconds = ns / 1'000'000'000;
  if (seconds < 60)
    return sign + with_decimals(ns, 1'000'000'000) + "s";
  auto minutes = seconds / 60;
  if (minutes < 60)
    return sign + std::to_string(minutes) + 'm' + std::to_string(seconds % 60) + 's';
  return sign + std::to_string(minutes / 60) + 'h' + std::to_string(minutes % 60) + 'm';
}

} // namespace troupe
