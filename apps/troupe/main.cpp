// troupe: the command line and the shell.
#include "client.hpp"
#include "command_line.hpp"
#include "console.hpp"
#include "interrupts.hpp"
#include "runner.hpp"
#include "session.hpp"
#include "shell.hpp"
#include "troupe/transport/log.hpp"

#include <clocale>
#include <cstdlib>
#include <unistd.h>

namespace {

using namespace troupe::cli;

std::vector<std::string> our_environment() {
  std::vector<std::string> entries;
  for (auto entry = ::environ; entry && *entry; ++entry)
    entries.emplace_back(*entry);
  return entries;
}

/// One thread yet: the environment may be changed.
void prepare_process(const connection_options& options) {
  std::setlocale(LC_CTYPE, "");
  if (options.device)
    ::unsetenv("TROUPE_DEVICE"); // it would count more than the option
  if (!std::getenv("TROUPE_LOG"))
    troupe::set_log_level(spdlog::level::off); // what matters is in the errors that commands show
}

int run(int argc, char** argv) {
  auto line = parse_words({argv + (argc > 0 ? 1 : 0), argv + argc}, word_source::arguments);
  auto environment = our_environment();
  prepare_process(line.options);
  interrupts stop;
  console out{stop};
  auto is_shell = !line.command && line.answer.empty();
  session s{out, stop, line.options, std::move(environment), is_shell};
  if (!is_shell) {
    auto code = run_parsed(s, line);
    return stop.raised() && code == exit_code::ok ? exit_code::interrupted : code;
  }
  return ::isatty(STDIN_FILENO) == 1 && out.output_is_terminal() ? run_shell(s) : run_script(s);
}

} // namespace

int main(int argc, char** argv) {
  auto code = run(argc, argv);
  if (client::left_behind())
    std::_Exit(code); // everything is written; only a connection that nobody wants is not done
  return code;
}
