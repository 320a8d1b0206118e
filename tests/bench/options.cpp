#include "options.hpp"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <fnmatch.h>
#include <sstream>

namespace bench {

namespace {

void add_context(CLI::App& app, context& how) {
  app.add_option("--address", how.address, "Address that the peers listen on")
      ->capture_default_str();
  app.add_option("--device", how.device, "Troupe's device, as TROUPE_DEVICE takes it")
      ->capture_default_str();
  app.add_flag("--spinning", how.spinning, "Let Troupe spin in every row")->group("");
  app.add_flag("--quick", how.quick, "Only check that every cell can be measured");
}

} // namespace

options parse_command_line(int argc, char** argv) {
  options out;
  // It would override the device of a column that has its own.
  if (auto device = std::getenv("TROUPE_DEVICE")) {
    out.how.device = device;
    ::unsetenv("TROUPE_DEVICE");
  }
  CLI::App app{"Measures Troupe beside CAF over TCP and what the machine allows: two processes, "
               "interleaved, one table."};
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_option("--rows", out.rows, "Only rows whose name contains or matches PATTERN")
      ->type_name("PATTERN,...");
  app.add_option("--columns", out.columns, "Only columns whose name contains or matches PATTERN")
      ->type_name("PATTERN,...");
  app.add_option("--rounds", out.rounds, "How often each cell is measured")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_flag("--json", out.json, "Print JSON with every single value");
  app.add_flag("--list", out.list, "Print the names of rows and columns");
  add_context(app, out.how);

  auto measure = app.add_subcommand("measure", "Measures one cell once")->group("");
  measure->add_option("row", out.row)->required();
  measure->add_option("column", out.how.column)->required();
  add_context(*measure, out.how);
  auto serve = app.add_subcommand("serve", "The other side of a cell")->group("");
  serve->add_option("role", out.role)->required();
  serve->add_option("column", out.how.column)->required();
  serve->add_option("arguments", out.arguments);
  add_context(*serve, out.how);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    std::exit(app.exit(e) == 0 ? 0 : 2);
  }
  if (*measure)
    out.what = options::mode::measure;
  if (*serve)
    out.what = options::mode::serve;
  return out;
}

bool matches(const std::string& name, const std::string& patterns) {
  std::istringstream in{patterns};
  for (std::string pattern; std::getline(in, pattern, ',');)
    if (name.find(pattern) != std::string::npos || ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0)
      return true;
  return false;
}

} // namespace bench
