// Measures cells, interleaved.
#pragma once

#include "options.hpp"
#include "row.hpp"

#include <map>
#include <string>
#include <vector>

namespace bench {

/// The samples of one row by column, one a round.
struct row_result {
  const row* what = nullptr;
  std::map<std::string, std::vector<sample>> cells;
};

/// Measures the chosen rows and columns `rounds` times. All cells of a row are measured one after
/// the other, each round beginning with another one, so that what else the machine does meets all
/// of them. Tells on standard error how far it is. Ends early, with what it has, when `interrupt`
/// was called.
std::vector<row_result> run_rows(const options& chosen);

/// For a signal handler: `run_rows` is to end. The cell that is being measured is left out.
void interrupt() noexcept;
bool interrupted() noexcept;

/// Measures one cell in this process, prints the sample for `run_rows` and ends the process.
[[noreturn]] void measure_here(const options& chosen);

} // namespace bench
