#include "words.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::cli;
using strings = std::vector<std::string>;

TEST_CASE("words are separated by blanks and kept together by quotes") {
  CHECK(split_words("").value() == strings{});
  CHECK(split_words(" \t\r\n").value() == strings{});
  CHECK(split_words("  wait  12 13\r\n").value() == strings{"wait", "12", "13"});
  CHECK(split_words("sh -c 'echo \"a b\" \\n'").value() == strings{"sh", "-c", "echo \"a b\" \\n"});
  CHECK(split_words(R"(a"b c"'d e'f)").value() == strings{"ab cd ef"});
  CHECK(split_words(R"("" '' x)").value() == strings{"", "", "x"});
  CHECK(split_words(R"("a\"b" "a\\b" "a\nb")").value() == strings{"a\"b", "a\\b", "a\\nb"});
  CHECK(split_words(R"(a\ b \' \\)").value() == strings{"a b", "'", "\\"});
}

TEST_CASE("a comment begins with a word that begins with #") {
  CHECK(split_words("# all of it 'is").value() == strings{});
  CHECK(split_words("jobs # now").value() == strings{"jobs"});
  CHECK(split_words("a#b '#'c \\#d").value() == strings{"a#b", "#c", "#d"});
}

TEST_CASE("an open end is an error that says where") {
  CHECK(split_words("say 'it").error().text() == "the quote ' at column 5 is not closed");
  CHECK(split_words("\"a\\\"").error().text() == "the quote \" at column 1 is not closed");
  CHECK(split_words("a\\").error().code() == errc::invalid_argument);
}

TEST_CASE("a line that is being typed has a last word") {
  auto split = split_partial("job  1");
  CHECK(split.before == strings{"job"});
  CHECK(split.last == "1");
  CHECK(split.last_begin == 5);

  split = split_partial("job ");
  CHECK(split.before == strings{"job"});
  CHECK(split.last.empty());
  CHECK(split.last_begin == 4);

  split = split_partial("send 'my act");
  CHECK(split.last == "my act");
  CHECK(split.last_begin == 5);

  split = split_partial("");
  CHECK(split.before.empty());
  CHECK(split.last_begin == 0);
}
