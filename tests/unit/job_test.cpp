#include <doctest/doctest.h>
#include <troupe/actors/job.hpp>

using namespace troupe;
using namespace troupe::cluster;

namespace {

job_spec valid() {
  job_spec spec;
  spec.argv = {"/bin/true"};
  return spec;
}

std::string problem(const job_spec& spec) {
  auto checked = check(spec);
  REQUIRE_FALSE(checked);
  CHECK(checked.error().code() == errc::invalid_argument);
  return checked.error().text();
}

} // namespace

TEST_CASE("a job that makes sense is taken") {
  CHECK(check(valid()));
  auto spec = valid();
  spec.name = "größe";
  spec.argv = {"sh", "", "-c", "\n"};
  spec.env = {"A=", "B=c=d"};
  spec.cwd = "/tmp";
  spec.array = task_range{4'294'967'295 - 999'999, 4'294'967'295};
  CHECK(check(spec));
  CHECK(spec.task_count() == 1'000'000);
  CHECK(valid().task_count() == 1);
}

TEST_CASE("a job that cannot run anywhere is refused with the reason") {
  auto spec = valid();
  spec.argv = {};
  CHECK(problem(spec) == "cannot submit: there is no command; write it behind --");
  spec.argv = {"", "x"};
  CHECK(problem(spec).find("no command") != std::string::npos);
  spec = valid();
  spec.cpus = 0;
  CHECK(problem(spec) == "cannot submit: a task needs at least 1 CPU");
  spec = valid();
  spec.array = task_range{5, 4};
  CHECK(problem(spec) == "cannot submit: the array 5-4 is inverted");
  spec.array = task_range{0, 1'000'000};
  CHECK(problem(spec) == "cannot submit: the array has 1000001 tasks; a job may have 1000000");
  spec.array = task_range{0, 4'294'967'295};
  CHECK(problem(spec).find("4294967296 tasks") != std::string::npos);
  spec = valid();
  spec.argv.emplace_back("a\0b", 3);
  CHECK(problem(spec).find("zero byte") != std::string::npos);
  spec = valid();
  spec.env = {"A"};
  CHECK(problem(spec).find("'A' is not of the form") != std::string::npos);
  spec.env = {"=A"};
  CHECK(problem(spec).find("'=A' is not of the form") != std::string::npos);
  spec = valid();
  spec.cwd = "here";
  CHECK(problem(spec).find("absolute") != std::string::npos);
  spec.cwd = std::string{"/a\0b", 4};
  CHECK(problem(spec).find("zero byte") != std::string::npos);
  spec = valid();
  spec.name = "a\nb";
  CHECK(problem(spec).find("control") != std::string::npos);
  spec = valid();
  spec.user = std::string(256, 'u');
  CHECK(problem(spec).find("255") != std::string::npos);
  spec = valid();
  spec.argv.emplace_back(max_command_bytes, 'x');
  CHECK(problem(spec).find("Put them into a file") != std::string::npos);
}

TEST_CASE("an outcome becomes an exit status as in a shell") {
  task_outcome outcome;
  CHECK(outcome.success());
  CHECK(outcome.exit_status() == 0);
  outcome.exit_code = 3;
  CHECK(outcome.exit_status() == 3);
  outcome = {};
  outcome.signal = 9;
  CHECK(outcome.exit_status() == 137);
  outcome = {};
  outcome.failure = "worker lost";
  CHECK(outcome.exit_status() == 125);
  CHECK_FALSE(outcome.success());
  outcome = {};
  outcome.exit_code = -1;
  CHECK(outcome.exit_status() == 125);
  outcome.signal = 15;
  CHECK(outcome.exit_status() == 143);
  outcome = {};
  for (int32_t wild : {INT32_MIN, -1, 256, INT32_MAX}) {
    outcome.exit_code = wild;
    CHECK(outcome.exit_status() >= 1);
    CHECK(outcome.exit_status() <= 255);
    task_outcome killed;
    killed.signal = wild;
    CHECK(killed.exit_status() >= 1);
    CHECK(killed.exit_status() <= 255);
  }
}
