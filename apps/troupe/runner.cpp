#include "runner.hpp"

#include "command_line.hpp"
#include "session.hpp"

#include <system_error>

namespace troupe::cli {

namespace {

int carry_out(session& s, const parsed_line& line) {
  if (line.exit_code != exit_code::ok) {
    s.out().complain(line.answer);
    return line.exit_code;
  }
  if (!line.answer.empty())
    s.out().print(line.answer);
  return line.command ? line.command(s) : exit_code::ok;
}

} // namespace

int run_parsed(session& s, const parsed_line& line) {
  auto code = carry_out(s, line);
  if (auto problem = s.out().failure(); problem != 0) {
    s.out().complain("cannot write to standard output: " +
                     std::generic_category().message(problem));
    return code == exit_code::ok ? exit_code::refused : code;
  }
  return code;
}

} // namespace troupe::cli
