#include "external.hpp"
#include "measurement.hpp"
#include "options.hpp"
#include "table.hpp"

#include <doctest/doctest.h>
#include <map>
#include <sstream>
#include <stdexcept>
#include <unistd.h>

using namespace bench;

TEST_CASE("patterns choose names by a part or with wildcards") {
  CHECK(matches("round-trip", "trip"));
  CHECK(matches("round-trip", "one-way,round*"));
  CHECK(matches("16MiB", "*"));
  CHECK_FALSE(matches("16MiB", "6MiB?,256"));
}

TEST_CASE("the last line of numbers is found in what other programs print") {
  const std::vector<double> ucx{5000, 1.078, 34.823};
  CHECK(last_numbers("iterations,99.0_percentile_lat,avg_lat\n5000,1.078,34.823\n", " ,") == ucx);
  const std::vector<double> perftest{64, 1000, 2.5};
  CHECK(last_numbers(" #bytes #iterations t_min[usec]\n 64      1000        2.5\n-----\n", " \t") ==
        perftest);
  CHECK_THROWS_AS(last_numbers("Couldn't connect\n", " "), std::runtime_error);
}

TEST_CASE("a sample passes from process to process") {
  sample before;
  before.set("median, µs", 12.25);
  before.set("p99, µs", 40);
  before.remark = "a \"remark\"\n";
  auto after = sample::from_line(before.to_line());
  CHECK(after.values == before.values);
  CHECK(after.remark == before.remark);
  CHECK(after.failure.empty());
  CHECK(sample::from_line(sample::failed("gone").to_line()).failure == "gone");
  CHECK(sample::from_line(sample::skip("too small").to_line()).skipped == "too small");
}

TEST_CASE("a measurement lasts as many units as it must, after its warm-up") {
  measurement course{{std::chrono::nanoseconds{0}, std::chrono::nanoseconds{0}, 3}, ::getpid()};
  CHECK(course.unit_done(1000)); // the warm-up's end
  CHECK(course.unit_done(1));
  CHECK(course.unit_done(1));
  CHECK_FALSE(course.unit_done(1));
}

namespace {

/// Results of the row one-way, where more is better: a sample per value.
row_result results_of(const std::map<std::string, std::vector<double>>& values) {
  row_result out;
  for (auto& each : rows())
    if (each.name == "one-way")
      out.what = &each;
  REQUIRE(out.what);
  for (auto& [column, all] : values)
    for (auto value : all) {
      sample one;
      one.set("M msg/s", value);
      out.cells[column].push_back(one);
    }
  return out;
}

std::string table_of(const row_result& result) {
  std::ostringstream out;
  print_table(out, {result}, {});
  return out.str();
}

/// The fields of the line that begins with `label`.
std::vector<std::string> fields_of(const std::string& table, const std::string& label) {
  std::istringstream lines{table};
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(label)) {
      std::istringstream rest{line.substr(label.size())};
      std::vector<std::string> out;
      for (std::string field; rest >> field;)
        out.push_back(field);
      return out;
    }
  return {};
}

using fields = std::vector<std::string>;

} // namespace

TEST_CASE("the table shows medians, spread and ratios to tuned CAF") {
  auto table = table_of(results_of({{"troupe", {8, 2, 4}}, {"caf_tuned", {1, 3, 2}}}));
  CHECK(fields_of(table, "  M msg/s") == fields{"4.00", "2.00"});
  CHECK(fields_of(table, "    min..max") == fields{"2.00..8.00", "1.00..3.00"});
  CHECK(fields_of(table, "    times better than CAF tuned") == fields{"2.00", "1.00"});
  CHECK(fields_of(table, "    best over best") == fields{"2.67", "1.00"});
}

TEST_CASE("a failure shows in the table, with its reason below, and makes it incomplete") {
  auto result = results_of({{"troupe", {8}}, {"caf_tuned", {1}}});
  options chosen;
  CHECK(complete({result}, chosen));
  result.cells["caf_tuned"] = {sample::failed("silent for 60 s")};
  CHECK(complete({result}, chosen)); // it is not Troupe's
  chosen.how.quick = true;
  CHECK_FALSE(complete({result}, chosen));
  chosen.how.quick = false;
  result.cells["troupe"] = {sample::failed("no answer")};
  CHECK_FALSE(complete({result}, chosen));
  auto table = table_of(result);
  CHECK(fields_of(table, "  no value") == fields{"failed", "failed"});
  CHECK(table.find("Troupe: no answer\n") != std::string::npos);
}
