// Rows, columns and cells of the table. To add a row: write a function that measures, in a file of
// its own if it has a peer of its own, and list it in `rows.cpp`.
#pragma once

#include "measurement.hpp"
#include "peer.hpp"
#include "sample.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace bench {

/// How a cell is to be measured.
struct context {
  std::string column;
  std::string address = "127.0.0.1"; ///< that peers listen on
  std::string device = "soft";       ///< Troupe's
  bool quick = false;                ///< only whether it works, in the shortest time
  bool spinning = false;             ///< Troupe may spin before it sleeps

  /// The usual effort: some hundreds of milliseconds.
  effort usual() const;

  /// Starts this program in `role` (see `roles`) with `arguments`; `inherit` is its descriptor 3.
  std::unique_ptr<child> start_peer(const std::string& role, std::vector<std::string> arguments,
                                    int inherit = -1) const;
};

/// A column: one system under test.
struct column {
  std::string name;   ///< for `--columns` and `--json`
  std::string title;  ///< for the table
  std::string what;   ///< explained under the table
  std::string absent; ///< why it cannot be measured here; empty when it can
};

/// All columns; which of them are absent may depend on the device.
std::vector<column> columns(const context& c);

/// Measured in a process of its own, so that nothing carries over. May throw `std::exception`,
/// which counts as a failure.
struct cell {
  std::string column;
  std::function<sample(const context&)> measure;
};

struct row {
  std::string name;  ///< for `--rows` and `--json`
  std::string title; ///< for the table
  std::string goal;  ///< in words
  bool more_is_better = false;
  std::vector<cell> cells;
  std::chrono::seconds patience{120}; ///< after which silence counts as a failure
};

const std::vector<row>& rows();

/// A peer's part: prints what the other side must know as one line, then serves until it is killed
/// or told to end. @returns the exit status.
struct role {
  std::string name;
  std::function<int(const context&, const std::vector<std::string>&)> serve;
};

const std::vector<role>& roles();

} // namespace bench
