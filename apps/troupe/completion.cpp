#include "completion.hpp"

#include "format.hpp"
#include "words.hpp"

#include <algorithm>

namespace troupe::cli {

namespace {

std::vector<std::string> names_of(std::span<const command_info> commands) {
  std::vector<std::string> names;
  for (auto& command : commands)
    names.push_back(command.name);
  return names;
}

std::vector<std::string> possible_words(const partial_line& line,
                                        std::span<const command_info> commands,
                                        const operand_source& operands) {
  if (line.before.empty())
    return names_of(commands);
  auto found = std::find_if(commands.begin(), commands.end(), [&](const command_info& command) {
    return command.name == line.before[0];
  });
  if (found == commands.end())
    return {};
  if (std::find(line.before.begin(), line.before.end(), "--") != line.before.end())
    return {};
  if (line.last.starts_with('-'))
    return found->options;
  switch (found->operand) {
  case operand_kind::none:
    return {};
  case operand_kind::command:
    return names_of(commands);
  case operand_kind::actor:
    return line.before.size() == 1 ? operands(found->operand) : std::vector<std::string>{};
  case operand_kind::job:
    break;
  }
  return operands(found->operand);
}

/// Whether a character of UTF-8 stands on both sides of `at`.
bool splits_character(const std::string& text, size_t at) {
  return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0U) == 0x80U;
}

} // namespace

completion complete_line(std::string_view line, std::span<const command_info> commands,
                         const operand_source& operands) {
  auto split = split_partial(line);
  completion found{split.last_begin, split.last, possible_words(split, commands, operands)};
  std::erase_if(found.candidates,
                [&](const std::string& word) { return !word.starts_with(split.last); });
  std::sort(found.candidates.begin(), found.candidates.end());
  found.candidates.erase(std::unique(found.candidates.begin(), found.candidates.end()),
                         found.candidates.end());
  return found;
}

std::string completing_text(const completion& found) {
  if (found.candidates.empty())
    return {};
  auto& first = found.candidates.front();
  auto& last = found.candidates.back(); // sorted: what these two share, all do
  if (found.candidates.size() == 1)
    return quote_word(first) + " ";
  auto shared = static_cast<size_t>(
      std::mismatch(first.begin(), first.end(), last.begin(), last.end()).first - first.begin());
  while (shared > 0 && (splits_character(first, shared) || splits_character(last, shared)))
    --shared;
  return shared > found.typed.size() ? first.substr(0, shared) : std::string{};
}

std::string in_columns(const std::vector<std::string>& words, size_t width) {
  constexpr size_t gap = 2;
  size_t widest = 1;
  for (auto& word : words)
    widest = std::max(widest, display_width(word) + gap);
  auto per_line = std::max<size_t>(width / widest, 1);
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    auto last = i + 1 == words.size() || (i + 1) % per_line == 0;
    text += words[i];
    text += last ? "\n" : std::string(widest - display_width(words[i]), ' ');
  }
  return text;
}

} // namespace troupe::cli
