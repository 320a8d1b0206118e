#include "completion.hpp"

#include <algorithm>
#include <doctest/doctest.h>

using namespace troupe::cli;
using strings = std::vector<std::string>;

namespace {

strings operands(operand_kind kind) {
  if (kind == operand_kind::job)
    return {"9", "12", "120", "12"};
  return {"scheduler", "storage", "my actor"};
}

strings candidates(std::string_view line) {
  return complete_line(line, list_commands(), operands).candidates;
}

} // namespace

TEST_CASE("the first word is completed with commands") {
  CHECK(candidates("sub") == strings{"submit"});
  CHECK(candidates("  job") == strings{"job", "jobs"});
  CHECK(candidates("nothing") == strings{});
  auto all = candidates("");
  CHECK(std::is_sorted(all.begin(), all.end()));
  for (auto name : {"nodes", "submit", "jobs", "job", "wait", "output", "cancel", "send", "actors",
                    "info", "shutdown", "doctor", "version", "help"})
    CHECK_MESSAGE(std::count(all.begin(), all.end(), name) == 1, name);
}

TEST_CASE("later words are completed with what the command takes") {
  CHECK(candidates("job ") == strings{"12", "120", "9"});
  CHECK(candidates("wait 9 12") == strings{"12", "120"});
  CHECK(candidates("send s") == strings{"scheduler", "storage"});
  CHECK(candidates("send scheduler s") == strings{});
  CHECK(candidates("help no") == strings{"nodes"});
  CHECK(candidates("nodes x") == strings{});
  CHECK(candidates("bogus ") == strings{});
}

TEST_CASE("a dash is completed with options") {
  CHECK(candidates("submit --c") == strings{"--clean-env", "--cpus", "--cwd"});
  CHECK(candidates("submit -- --c") == strings{});
  CHECK(candidates("jobs --j") == strings{"--json"});
}

TEST_CASE("what is inserted is what all candidates share") {
  CHECK(completing_text(complete_line("sub", list_commands(), operands)) == "submit ");
  CHECK(completing_text(complete_line("send s", list_commands(), operands)) == "");
  CHECK(completing_text(complete_line("job 1", list_commands(), operands)) == "12");
  CHECK(completing_text(complete_line("job 12", list_commands(), operands)) == "");
  CHECK(completing_text({0, "p", {"pr\u00e4zise", "pr\u00e4zision"}}) == "pr\u00e4zis");
  CHECK(completing_text({0, "p", {"pr\u00e4", "pr\u00e9"}}) == "pr"); // they share half a character
  CHECK(completing_text({0, "pr", {"pr\u00e4", "pr\u00e9"}}) == "");
  CHECK(completing_text(complete_line("xyz", list_commands(), operands)) == "");

  auto quoted = complete_line("send my", list_commands(), operands);
  CHECK(quoted.from == 5);
  CHECK(completing_text(quoted) == "'my actor' ");
  quoted = complete_line("send 'my a", list_commands(), operands);
  CHECK(quoted.from == 5);
  CHECK(completing_text(quoted) == "'my actor' ");
}

TEST_CASE("candidates stand in columns") {
  CHECK(in_columns({"a", "bbb", "cc"}, 11) == "a    bbb\ncc\n");
  CHECK(in_columns({"a", "b"}, 1) == "a\nb\n");
  CHECK(in_columns({}, 80).empty());
}
