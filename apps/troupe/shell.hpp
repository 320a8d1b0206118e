// The interactive shell, and the same commands from a file or a pipe.
#pragma once

namespace troupe::cli {

class session;

/// Reads commands from the terminal until `exit` or Ctrl-D. Failures of commands are shown; Ctrl-C
/// ends a command, not the shell.
/// @returns `exit_code::ok`.
int run_shell(session& s);

/// Reads commands from standard input, a line each, without a prompt, until one fails.
/// @returns its exit code, or `exit_code::ok` when none did.
int run_script(session& s);

} // namespace troupe::cli
