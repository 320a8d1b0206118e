// Standard output and standard error of the program.
#pragma once

#include <string>
#include <string_view>

namespace troupe::cli {

class interrupts;

/// Writes without buffers, so that what was printed is out when a command is interrupted. A reader
/// of standard output that went away (`| head`) is no error: nothing more is written.
class console {
public:
  /// A write that `stop` interrupts ends; `stop` must outlive the console.
  explicit console(const interrupts& stop);

  /// Writes to standard output.
  /// @returns false when it is closed or broken, or Ctrl-C was pressed: the command may as well
  /// end.
  bool print(std::string_view text);

  /// Prints "troupe: `text`" to standard error.
  void complain(std::string_view text);

  /// Writes to standard error.
  void note(std::string_view text);

  /// Shows `text` in place of the last progress text, on standard error; empty: only removes it.
  void progress(std::string_view text);

  /// The errno of a failed write to standard output, other than for a reader that went away; 0
  /// when all went well.
  int failure() const noexcept { return failure_; }

  /// Whether standard output still takes something.
  bool usable() const noexcept { return !closed_; }

  bool output_is_terminal() const noexcept { return output_is_terminal_; }
  bool errors_are_terminal() const noexcept { return errors_are_terminal_; }

  /// Whether standard output may be coloured: a terminal, and NO_COLOR not set.
  bool colours() const noexcept { return colours_; }

private:
  int write_all(int fd, std::string_view text) const;

  const interrupts& stop_;
  bool output_is_terminal_ = false;
  bool errors_are_terminal_ = false;
  bool colours_ = false;
  bool closed_ = false;
  int failure_ = 0;
  bool progress_shown_ = false;
};

} // namespace troupe::cli
