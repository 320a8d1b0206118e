#include "arguments.hpp"

#include <algorithm>
#include <charconv>

namespace troupe::cli {

result<uint64_t> parse_number(std::string_view text, std::string_view what) {
  uint64_t value = 0;
  auto end = text.data() + text.size();
  auto [stop, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc{} || stop != end)
    return fail(errc::invalid_argument,
                "'" + std::string{text} + "' is not " + std::string{what} + ": want a number");
  return value;
}

result<index_range> parse_index_range(std::string_view text) {
  auto wrong = [&](std::string_view why) {
    return fail(errc::invalid_argument,
                "'" + std::string{text} + "' is not a range of indices: " + std::string{why});
  };
  auto dash = text.find('-');
  auto first = parse_number(text.substr(0, dash), "an index");
  auto last = dash == text.npos ? first : parse_number(text.substr(dash + 1), "an index");
  if (!first || !last)
    return wrong("want FIRST-LAST, say 1-60");
  if (*first > *last)
    return wrong("the first is greater than the last");
  return index_range{*first, *last};
}

const char* find_variable(std::span<const std::string> environment, std::string_view name) {
  for (auto& entry : environment)
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return entry.c_str() + name.size() + 1;
  return nullptr;
}

result<std::vector<std::string>> task_environment(std::span<const std::string> base,
                                                  std::span<const std::string> overrides,
                                                  std::span<const std::string> caller) {
  std::vector<std::string> merged;
  auto set = [&](const std::string& entry) {
    auto name = std::string_view{entry}.substr(0, entry.find('=') + 1); // with the '='
    auto found = std::find_if(merged.begin(), merged.end(),
                              [&](const std::string& other) { return other.starts_with(name); });
    if (found == merged.end())
      merged.push_back(entry);
    else
      *found = entry;
  };
  for (auto& entry : base)
    if (entry.find('=') != entry.npos && entry[0] != '=')
      set(entry);
  for (auto& entry : overrides) {
    auto equals = entry.find('=');
    if (entry.empty() || equals == 0)
      return fail(errc::invalid_argument, "'" + entry + "' names no variable: want NAME=VALUE");
    if (equals != entry.npos) {
      set(entry);
    } else if (auto value = find_variable(caller, entry)) {
      set(entry + "=" + value);
    } else {
      return fail(errc::not_found, "your environment has no '" + entry +
                                       "': give it a value with " + entry + "=...");
    }
  }
  return merged;
}

std::string default_job_name(std::string_view command) {
  while (command.size() > 1 && command.ends_with('/'))
    command.remove_suffix(1);
  auto slash = command.rfind('/');
  if (slash != command.npos && command.size() > 1)
    command.remove_prefix(slash + 1);
  return std::string{command};
}

} // namespace troupe::cli
