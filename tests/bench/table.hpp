// Results for people and for machines.
#pragma once

#include "options.hpp"
#include "runner.hpp"

#include <iosfwd>
#include <vector>

namespace bench {

void print_table(std::ostream& to, const std::vector<row_result>& results, const options& chosen);
void print_json(std::ostream& to, const std::vector<row_result>& results, const options& chosen);

/// Whether every cell of Troupe's columns, and with `--quick` of every column, has been filled in
/// every round. A cell that this machine has not the memory for counts as filled.
bool complete(const std::vector<row_result>& results, const options& chosen);

} // namespace bench
