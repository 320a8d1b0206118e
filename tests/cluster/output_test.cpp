// Outputs and command lines of every size arrive byte for byte.
#include "cluster.hpp"

#include <doctest/doctest.h>
#include <random>
#include <string>
#include <troupe/actors/completion_slot.hpp>

using namespace cluster_test;

namespace {

std::string random_bytes(size_t count) {
  std::mt19937 source{static_cast<uint32_t>(count)};
  std::string bytes(count, '\0');
  for (auto& b : bytes)
    b = static_cast<char>(source());
  return bytes;
}

/// Runs a task that writes exactly `out` and `err`.
void check_output(const cluster& c, const std::string& out, const std::string& err) {
  CAPTURE(out.size());
  CAPTURE(err.size());
  write_file(c.scratch() / "out", out);
  write_file(c.scratch() / "err", err);
  auto job = c.submit({}, {"sh", "-c", "cat out; cat err >&2"});
  CHECK(c.wait(job) == 0);
  CHECK((c.output(job) == out)); // without printing megabytes
  CHECK((c.errors(job) == err));
  auto task = c.tasks(job)[0];
  CHECK(task["stdout_bytes"] == out.size());
  CHECK(task["stderr_bytes"] == err.size());
}

} // namespace

TEST_CASE("long outputs and long command lines" * doctest::test_suite("essential")) {
  cluster c;
  c.start_controller();
  c.join_worker("w1");

  SUBCASE("an output of 8 MiB") {
    check_output(c, random_bytes(8 << 20), random_bytes(100'000));
  }
  SUBCASE("a command line of 100 KiB") {
    std::string argument(100 << 10, 'x');
    argument.replace(50'000, 4, "here");
    auto job = c.submit({"--array", "0-5"}, {"printf", "%s", argument});
    CHECK(c.wait(job) == 0);
    for (int i = 0; i < 6; ++i)
      CHECK((c.output(job, i) == argument));
  }
}

TEST_SUITE_BEGIN("more");

TEST_CASE("output is byte-exact around every limit") {
  using troupe::cluster::max_inline_output;
  cluster c;
  c.start_controller();
  c.join_worker("w1");
  using namespace std::string_literals;
  check_output(c, "", "");
  check_output(c, "no newline at the end", "");
  check_output(c, "", "only an error\n");
  check_output(c, "\0a\0\r\n\xff\0"s, "\0"s);
  for (auto size : {max_inline_output - 1, max_inline_output, max_inline_output + 1}) {
    check_output(c, random_bytes(size), "");
    check_output(c, "", random_bytes(size));
    check_output(c, random_bytes(size / 2), random_bytes(size - size / 2));
  }
  check_output(c, "", random_bytes(3 << 20));
}

TEST_CASE("long outputs of several tasks at once stay apart") {
  cluster c;
  c.start_controller();
  c.join_worker("w1", {"--worker-cpus", "4"});
  c.join_worker("w2", {"--worker-cpus", "4"});
  constexpr int count = 24;
  for (int i = 0; i < count; ++i)
    write_file(c.scratch() / std::to_string(i), random_bytes(200'000 + static_cast<size_t>(i)));
  auto job = c.submit({"--array", "0-23"}, {"sh", "-c", "cat $TROUPE_TASK_INDEX"});
  CHECK(c.wait(job) == 0);
  for (int i = 0; i < count; ++i)
    CHECK((c.output(job, i) == read_file(c.scratch() / std::to_string(i))));
}

TEST_CASE("a command line that no system takes fails with a reason") {
  cluster c;
  c.start_controller();
  c.join_worker("w1");
  constexpr size_t most_of_one_argument = 128 << 10;
  words command{"true"};
  for (int i = 0; i < 9; ++i)
    command.emplace_back(most_of_one_argument - 10, 'x'); // together more than 1 MiB
  words all{"submit", "--"};
  all.insert(all.end(), command.begin(), command.end());
  auto how = c.troupe(all);
  CHECK(how.code == 1);
  CHECK(has(how.err, "1048576"));
  command.resize(8); // fits
  CHECK(c.wait(c.submit({"--clean-env", "--env", "PATH"}, command)) == 0);
}
