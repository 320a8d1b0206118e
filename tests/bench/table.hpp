// Results for people and for machines.
#pragma once

#include "options.hpp"
#include "runner.hpp"

#include <iosfwd>
#include <vector>

namespace bench {

void print_table(std::ostream& to, const std::vector<row_result>& results, const options& chosen);
void print_json(std::ostream& to, const std::vector<row_result>& results, const options& chosen);

/// Whether every cell of Troupe's columns has been filled in every round.
bool complete(const std::vector<row_result>& results);

} // namespace bench
