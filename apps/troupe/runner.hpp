// Runs what a command line asks for.
#pragma once

namespace troupe::cli {

class session;
struct parsed_line;

/// Runs the command, or prints the answer that it has instead.
/// @returns the exit code; `exit_code::refused` when standard output could not be written.
int run_parsed(session& s, const parsed_line& line);

} // namespace troupe::cli
