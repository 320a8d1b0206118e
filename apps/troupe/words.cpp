#include "words.hpp"

#include <optional>

namespace troupe::cli {

namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/// Takes a line apart character by character.
struct splitter {
  std::vector<std::string> words;
  std::optional<std::string> word; // that is not complete
  size_t word_begin = 0;
  size_t quote_begin = 0;
  char quote = 0;      // the open one
  bool escape = false; // a backslash was last
  bool comment = false;

  void take(std::string_view line) {
    for (size_t i = 0; i < line.size() && !comment; ++i)
      take(line[i], i);
  }

private:
  void take(char c, size_t at) {
    if (escape) {
      if (quote == '"' && c != '"' && c != '\\')
        *word += '\\';
      *word += c;
      escape = false;
    } else if (quote != 0) {
      if (c == quote)
        quote = 0;
      else if (quote == '"' && c == '\\')
        escape = true;
      else
        *word += c;
    } else if (is_blank(c)) {
      end_word();
    } else if (c == '#' && !word) {
      comment = true;
    } else {
      take_plain(c, at);
    }
  }

  void take_plain(char c, size_t at) {
    if (!word) {
      word.emplace();
      word_begin = at;
    }
    if (c == '\'' || c == '"') {
      quote = c;
      quote_begin = at;
    } else if (c == '\\') {
      escape = true;
    } else {
      *word += c;
    }
  }

  void end_word() {
    if (word)
      words.push_back(std::move(*word));
    word.reset();
  }
};

} // namespace

result<std::vector<std::string>> split_words(std::string_view line) {
  splitter all;
  all.take(line);
  if (all.quote != 0)
    return fail(errc::invalid_argument, std::string{"the quote "} + all.quote + " at column " +
                                            std::to_string(all.quote_begin + 1) + " is not closed");
  if (all.escape)
    return fail(errc::invalid_argument, "the line ends in a backslash");
  if (all.word)
    all.words.push_back(std::move(*all.word));
  return std::move(all.words);
}

partial_line split_partial(std::string_view line) {
  splitter all;
  all.take(line);
  if (!all.word)
    return {std::move(all.words), {}, line.size()};
  return {std::move(all.words), std::move(*all.word), all.word_begin};
}

} // namespace troupe::cli
