// Lines from a terminal: editing, history, completion. On libedit.
#pragma once

#include "completion.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace troupe::cli {

class interrupts;

/// One thread; the terminal is in raw mode only inside `read`.
class line_reader {
public:
  /// Gives what may stand at the end of a line that ends at the cursor.
  using completer = std::function<completion(std::string_view)>;

  enum class outcome : unsigned char {
    line,
    interrupted, ///< Ctrl-C: what was typed is dropped; the interrupt is cleared
    end,         ///< Ctrl-D on an empty line, or the terminal is gone
  };

  /// `stop` must outlive the reader. History is read from `history_file` and written back after
  /// each line (0600, in directories of 0700); empty: kept in memory only, and so it is when the
  /// file cannot be used.
  line_reader(std::string prompt, interrupts& stop, completer complete,
              std::filesystem::path history_file);
  ~line_reader();
  line_reader(const line_reader&) = delete;
  line_reader& operator=(const line_reader&) = delete;

  /// Reads a line, without its line end, into `line`; lines that are not blank enter the history.
  outcome read(std::string& line);

private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

/// ${XDG_STATE_HOME:-~/.local/state}/troupe/history; empty when there is no home.
std::filesystem::path default_history_file();

} // namespace troupe::cli
