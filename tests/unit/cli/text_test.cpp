#include "format.hpp"
#include "job_text.hpp"
#include "json.hpp"
#include "table.hpp"

#include <doctest/doctest.h>

using namespace troupe::cli;

TEST_CASE("control characters never reach the terminal") {
  CHECK(printable("plain \xc3\xa4") == "plain \xc3\xa4");
  CHECK(printable("a\nb\tc\x1b[31m\x7f") == "a\\nb\\tc\\x1b[31m\\x7f");
  CHECK(printable(std::string_view{"\0", 1}) == "\\x00");
  CHECK(printable("\xc2\x9b"
                  "31m") == "\\xc2\\x9b31m");
  CHECK(printable("\xc2") == "\xc2");
  CHECK(printable_lines("a\n\tb\r\x1b") == "a\n\tb\\r\\x1b");
}

TEST_CASE("ages have the two largest units") {
  CHECK(format_age(0) == "0.0s");
  CHECK(format_age(349) == "0.3s");
  CHECK(format_age(9'999) == "9.9s");
  CHECK(format_age(59'999) == "59s");
  CHECK(format_age(60'000) == "1m00s");
  CHECK(format_age(3'599'000) == "59m59s");
  CHECK(format_age(7'440'000) == "2h04m");
  CHECK(format_age(276'480'000) == "3d04h");
}

TEST_CASE("words are quoted where a shell needs it") {
  CHECK(quote_word("a-b_c=/d.e") == "a-b_c=/d.e");
  CHECK(quote_word("") == "''");
  CHECK(quote_word("it's $HOME") == "'it'\\''s $HOME'");
  CHECK(join_words(std::vector<std::string>{"sh", "-c", "echo 1"}) == "sh -c 'echo 1'");
}

TEST_CASE("columns are aligned by characters, not by bytes") {
  table shown{{{"NAME"}, {"N", true}, {"NOTE"}}};
  shown.add({{"\xc3\xa4\xc3\xb6"}, {"7"}, {""}});
  shown.add({{"long name"}, {"100"}, {"x\n"}});
  shown.add({{"short"}});
  CHECK(shown.render(false) == "NAME         N  NOTE\n"
                               "\xc3\xa4\xc3\xb6           7\n"
                               "long name  100  x\\n\n"
                               "short\n");
}

TEST_CASE("colours do not move columns") {
  table shown{{{"STATE"}, {"N", true}}};
  shown.add({{"dead", tint::bad}, {"1"}});
  CHECK(shown.render(true) == "STATE  N\n\x1b[31mdead\x1b[0m   1\n");
  CHECK(shown.render(false) == "STATE  N\ndead   1\n");
  CHECK(paint("", tint::bad).empty());
  CHECK(tint_of_state("alive") == tint::good);
  CHECK(tint_of_state("failed") == tint::bad);
  CHECK(tint_of_state("queued") == tint::none);
}

namespace {

job_summary some_job(std::string state, int32_t exit_status) {
  job_summary job;
  job.id = 12;
  job.name = "sort";
  job.user = "ann";
  job.state = std::move(state);
  job.tasks = 60;
  job.succeeded = 34;
  job.failed = 2;
  job.restarts = 1;
  job.exit_status = exit_status;
  job.run_ms = 3'200;
  return job;
}

} // namespace

TEST_CASE("a job's outcome in one line") {
  CHECK(outcome_line(some_job("succeeded", 0)) == "job 12 succeeded: 60 tasks in 3.2s");
  CHECK(outcome_line(some_job("failed", 3)) ==
        "job 12 failed: 2 of 60 tasks failed, exit status 3");
  CHECK(outcome_line(some_job("failed", 125)) ==
        "job 12 failed: 2 of 60 tasks failed, exit status 125; `job 12` tells why");
  CHECK(outcome_line(some_job("cancelled", 130)) ==
        "job 12 cancelled: 34 of 60 tasks had succeeded");
}

TEST_CASE("cancelling takes until the last task is dead") {
  auto job = some_job("running", 0);
  job.running = 1;
  CHECK(cancel_line(job) == "job 12 is being cancelled: 1 task still runs");
  job.running = 3;
  CHECK(cancel_line(job) == "job 12 is being cancelled: 3 tasks still run");
  job.running = 0;
  job.state = "cancelled";
  CHECK(cancel_line(job) == "job 12 is cancelled");
}

TEST_CASE("a job's progress in one line") {
  auto job = some_job("running", 0);
  job.running = 6;
  CHECK(progress_line(job) == "job 12: 36 of 60 tasks done, 6 running, 2 failed, 1 restarted");
  job = {};
  job.id = 3;
  job.tasks = 1;
  job.waiting = "no node has 99 CPUs";
  CHECK(progress_line(job) == "job 3: 0 of 1 task done; no node has 99 CPUs");
}

TEST_CASE("the exit code of a job is one that a process can have") {
  CHECK(exit_code_of(some_job("succeeded", 0)) == 0);
  CHECK(exit_code_of(some_job("succeeded", 7)) == 0);
  CHECK(exit_code_of(some_job("failed", 137)) == 137);
  CHECK(exit_code_of(some_job("failed", 0)) == 1);
  CHECK(exit_code_of(some_job("failed", -1)) == 1);
  CHECK(exit_code_of(some_job("failed", 100'000)) == 255);
}

TEST_CASE("how a task ended") {
  task_summary task;
  CHECK(end_of_task(task).empty());
  task.exit_code = 3;
  CHECK(end_of_task(task) == "exit 3");
  task.exit_code = -1;
  task.signal = 9;
  CHECK(end_of_task(task) == "signal 9 (Killed)");
  task.reason = "its worker was lost 3 times";
  CHECK(end_of_task(task) == "its worker was lost 3 times");
}

TEST_CASE("a page about a job tells its command as one would type it") {
  job_details job;
  job.summary = some_job("running", 0);
  job.request.argv = {"sh", "-c", "echo $TROUPE_TASK"};
  job.request.cwd = "/tmp";
  job.request.cpus = 2;
  job.request.memory = 512 * 1024 * 1024;
  job.request.is_array = true;
  job.request.first = 1;
  job.request.last = 60;
  job.tasks.resize(1);
  job.tasks[0].state = "running";
  job.tasks[0].node = "w1";
  auto page = job_page(job, false);
  CHECK(page.find("command:   sh -c 'echo $TROUPE_TASK'\n") != std::string::npos);
  CHECK(page.find("each task: 2 CPUs, 512MiB\n") != std::string::npos);
  CHECK(page.find("array:     1-60\n") != std::string::npos);
  CHECK(page.find("TASK  STATE    NODE") != std::string::npos);
}

TEST_CASE("JSON has the names of the messages' members, and is valid whatever a name holds") {
  auto job = some_job("failed", 3);
  job.name = "a\xff\"\n";
  auto read = json::parse(to_text(json_of(std::vector<job_summary>{job})));
  REQUIRE(read.size() == 1);
  CHECK(read[0]["id"] == 12);
  CHECK(read[0]["exit_status"] == 3);
  CHECK(read[0]["run_ms"] == 3200);
  CHECK(read[0]["name"] == "a\xef\xbf\xbd\"\n");

  node_summary node;
  node.id = "w1";
  node.roles = {"worker"};
  node.memory = UINT64_MAX;
  read = json::parse(to_text(json_of(node)));
  CHECK(read["roles"] == json::array({"worker"}));
  CHECK(read["memory"] == UINT64_MAX);
  CHECK(read["cpu_busy_permille"] == 0);
}
