// bench: the benchmarks of `./bootstrap bench`. The process that people start only starts others
// and prints the table; each cell is measured by a fresh pair of processes.
#include "options.hpp"
#include "peer.hpp"
#include "runner.hpp"
#include "table.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>

namespace {

using namespace bench;

int serve(const options& chosen) {
  auto& all = roles();
  auto found =
      std::find_if(all.begin(), all.end(), [&](const role& r) { return r.name == chosen.role; });
  if (found == all.end()) {
    std::fprintf(stderr, "bench: there is no role %s\n", chosen.role.c_str());
    return 2;
  }
  return found->serve(chosen.how, chosen.arguments);
}

int print_names(const options& chosen) {
  std::puts("rows:");
  for (auto& each : rows())
    std::printf("  %-16s %s\n", each.name.c_str(), each.title.c_str());
  std::puts("columns:");
  for (auto& each : columns(chosen.how))
    std::printf("  %-16s %s%s%s\n", each.name.c_str(), each.what.c_str(),
                each.absent.empty() ? "" : "; absent: ", each.absent.c_str());
  return 0;
}

int make_table(const options& chosen) {
  for (auto number : {SIGINT, SIGTERM})
    std::signal(number, [](int) { interrupt(); });
  auto results = run_rows(chosen);
  if (results.empty()) {
    std::fprintf(stderr, "bench: no row is like '%s'; --list names them\n", chosen.rows.c_str());
    return 2;
  }
  (chosen.json ? print_json : print_table)(std::cout, results, chosen);
  return !interrupted() && complete(results, chosen) ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) try {
  auto chosen = parse_command_line(argc, argv);
  if (chosen.what != options::mode::table)
    end_with_parent();
  switch (chosen.what) {
  case options::mode::measure:
    measure_here(chosen);
  case options::mode::serve:
    return serve(chosen);
  case options::mode::table:
    break;
  }
  return chosen.list ? print_names(chosen) : make_table(chosen);
} catch (const std::exception& e) {
  std::fprintf(stderr, "bench: %s\n", e.what());
  return 1;
}
