#include "command_line.hpp"

#include <doctest/doctest.h>

using namespace troupe::cli;
using strings = std::vector<std::string>;

namespace {

constexpr int usage_code = 2;

void check_wrong(strings words, const std::string& text,
                 word_source source = word_source::arguments) {
  auto line = parse_words(std::move(words), source);
  CAPTURE(line.answer);
  CHECK(line.exit_code == usage_code);
  CHECK_FALSE(line.command);
  CHECK(line.answer.find(text) != std::string::npos);
}

bool is_command(strings words, word_source source = word_source::arguments) {
  auto line = parse_words(std::move(words), source);
  INFO(line.answer);
  CHECK(line.answer.empty());
  return static_cast<bool>(line.command);
}

} // namespace

TEST_CASE("every command is understood") {
  for (auto name : {"nodes", "jobs", "actors", "info", "shutdown", "doctor", "version", "help"})
    CHECK_MESSAGE(is_command({name}), name);
  CHECK(is_command({"job", "12", "--json"}));
  CHECK(is_command({"cancel", "12"}));
  CHECK(is_command({"wait", "12", "13", "-q"}));
  CHECK(is_command({"output", "12", "--task", "3", "--stderr"}));
  CHECK(is_command({"output", "12", "--all"}));
  CHECK(is_command({"send", "nodes", "jobs", "[x]", "--", "--json"}));
  CHECK(is_command({"submit", "--name", "a b", "--cpus", "2", "--mem", "1GiB", "--array", "1-9",
                    "--env", "A=[1,2]", "--env", "B", "--cwd", "/tmp", "--wait", "--", "ls",
                    "--all"}));
}

TEST_CASE("options of the connection stand before or behind the command") {
  auto line = parse_words({"--controller", "h:1", "jobs", "--device", "soft", "--config=f"},
                          word_source::arguments);
  CHECK(line.command);
  CHECK(line.options.controller == "h:1");
  CHECK(line.options.device == "soft");
  CHECK(line.options.config == "f");
  check_wrong({"--controller", "h:1", "jobs"}, "unknown option '--controller'", word_source::shell);
}

TEST_CASE("no words mean the shell") {
  auto line = parse_words({"--device", "soft"}, word_source::arguments);
  CHECK_FALSE(line.command);
  CHECK(line.answer.empty());
  CHECK(line.options.device == "soft");
}

TEST_CASE("what is wrong is named, with the nearest that is right") {
  check_wrong({"nods"}, "unknown command 'nods'; did you mean 'nodes'? See `troupe --help`");
  check_wrong({"nods"}, "See `help`", word_source::shell);
  check_wrong({"jobs", "--jsn"}, "unknown option '--jsn' of `jobs`; did you mean '--json'?");
  check_wrong({"--kontroller=x", "jobs"}, "unknown option '--kontroller'");
  check_wrong({"jobs", "12"}, "`jobs` does not take '12'");
  check_wrong({"job"}, "ID is required");
  check_wrong({"job", "abc"}, "'abc' is not a job id");
  check_wrong({"job", "1", "2"}, "`job` does not take '2'");
  check_wrong({"output", "1", "--task", "x"}, "--task: 'x' is not the index of a task");
  check_wrong({"output", "1", "--task", "1", "--all"}, "--task excludes --all");
  check_wrong({"jobs", "--", "x"}, "only for `submit` and `send`");
  check_wrong({"help", "nods"}, "no command 'nods'; did you mean 'nodes'?");
}

TEST_CASE("a job is checked before it is sent") {
  check_wrong({"submit"}, "no command: put it behind '--'");
  check_wrong({"submit", "--"}, "no command: put it behind '--'");
  check_wrong({"submit", "echo", "hi"}, "put '--' before the command: submit [OPTIONS] -- echo");
  check_wrong({"submit", "--", ""}, "the command is empty");
  check_wrong({"submit", "--cpus", "0", "--", "ls"}, "--cpus");
  check_wrong({"submit", "--cpus", "-1", "--", "ls"}, "--cpus");
  check_wrong({"submit", "--mem", "12Q", "--", "ls"}, "--mem: '12Q'");
  check_wrong({"submit", "--array", "9-2", "--", "ls"}, "--array: '9-2'");
}

TEST_CASE("help is an answer, not an error") {
  auto line = parse_words({"--help"}, word_source::arguments);
  CHECK(line.exit_code == 0);
  CHECK(line.answer.find("TROUPE_CONTROLLER") != std::string::npos);
  line = parse_words({"wait", "-h"}, word_source::arguments);
  CHECK(line.exit_code == 0);
  CHECK(line.answer.find("troupe wait") != std::string::npos);
  line = parse_words({"wait", "-h"}, word_source::shell);
  CHECK(line.answer.find("troupe wait") == std::string::npos);
  line = parse_words({"--version"}, word_source::arguments);
  CHECK(line.answer.find("troupe ") == 0);
}
