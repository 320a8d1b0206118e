#include "runner.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <set>
#include <stdexcept>

namespace bench {

namespace {

volatile std::sig_atomic_t stop = 0;

const row& row_named(const std::string& name) {
  auto& all = rows();
  auto found = std::find_if(all.begin(), all.end(), [&](const row& r) { return r.name == name; });
  if (found == all.end())
    throw std::invalid_argument{"there is no row " + name};
  return *found;
}

const cell* cell_of(const row& from, const std::string& column) {
  auto found = std::find_if(from.cells.begin(), from.cells.end(),
                            [&](const cell& c) { return c.column == column; });
  return found == from.cells.end() ? nullptr : &*found;
}

sample measure(const row& what, const cell& which, const context& how) {
  std::vector<std::string> argv{this_program(), "measure",  "--address", how.address,
                                "--device",     how.device, what.name,   which.column};
  if (how.quick)
    argv.emplace_back("--quick");
  child process{std::move(argv)};
  std::string output;
  auto end = process.finish(what.patience, output);
  if (end.timed_out)
    return sample::failed("silent for " + std::to_string(what.patience.count()) + " s");
  if (end.status != 0)
    return sample::failed("the measuring process ended: " + end.text());
  return sample::from_line(output);
}

} // namespace

void interrupt() noexcept {
  stop = 1;
}

bool interrupted() noexcept {
  return stop != 0;
}

std::vector<row_result> run_rows(const options& chosen) {
  std::vector<row_result> out;
  for (auto& each : rows())
    if (matches(each.name, chosen.rows))
      out.push_back({&each, {}});
  std::set<std::string> measurable;
  for (auto& each : columns(chosen.how))
    if (each.absent.empty())
      measurable.insert(each.name);
  for (unsigned round = 0; round < chosen.rounds; ++round)
    for (auto& result : out) {
      std::fprintf(stderr, "round %u of %u: %s\n", round + 1, chosen.rounds,
                   result.what->name.c_str());
      auto& cells = result.what->cells;
      for (size_t i = 0; i < cells.size(); ++i) {
        auto& which = cells[(i + round) % cells.size()];
        if (measurable.count(which.column) == 0 || !matches(which.column, chosen.columns))
          continue;
        auto got = measure(*result.what, which, chosen.how);
        if (interrupted())
          return out;
        result.cells[which.column].push_back(std::move(got));
      }
    }
  return out;
}

void measure_here(const options& chosen) {
  // Should a measurement need more memory than there is, then it, and nothing else, is to end.
  std::ofstream{"/proc/self/oom_score_adj"} << "1000";
  sample out;
  try {
    auto which = cell_of(row_named(chosen.row), chosen.how.column);
    if (!which)
      throw std::invalid_argument{"row " + chosen.row + " has no column " + chosen.how.column};
    out = which->measure(chosen.how);
  } catch (const std::exception& e) {
    out = sample::failed(e.what());
  }
  std::cout << out.to_line() << std::endl;
  // Nothing that still runs matters: a system whose peer fell silent would not end.
  std::_Exit(0);
}

} // namespace bench
