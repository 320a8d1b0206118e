// What a job gets to see, how it ends, and what is told of it.
#include "cluster.hpp"

#include <csignal>
#include <doctest/doctest.h>
#include <string>

using namespace cluster_test;

namespace {

std::string joined(const words& lines) {
  std::string text;
  for (auto& line : lines)
    text += line + '\n';
  return text;
}

} // namespace

TEST_CASE("every task of an array runs once and has its own output" *
          doctest::test_suite("essential")) {
  cluster c;
  c.start_controller();
  c.join_worker("w1");
  c.join_worker("w2");
  constexpr uint32_t first = 5, last = 44;
  auto job = c.submit({"--array", "5-44"},
                      {"sh", "-c", "echo out $TROUPE_TASK_INDEX; echo err $TROUPE_TASK_INDEX >&2"});
  CHECK(c.wait(job) == 0);
  std::string all_output, all_errors;
  for (auto index = first; index <= last; ++index) {
    all_output += "out " + std::to_string(index) + '\n';
    all_errors += "err " + std::to_string(index) + '\n';
  }
  CHECK(c.ask({"output", job, "--all"}) == all_output);
  CHECK(c.ask({"output", job, "--all", "--stderr"}) == all_errors);
  CHECK(c.output(job, 17) == "out 17\n");

  auto summary = c.summary(job);
  CHECK(summary["state"] == "succeeded");
  CHECK(summary["succeeded"] == 40);
  CHECK(summary["restarts"] == 0);
  auto next = first;
  for (auto& task : c.tasks(job)) {
    CHECK(task["index"] == next++);
    CHECK(task["attempt"] == 1);
    CHECK(task["exit_code"] == 0);
    auto node = task["node"];
    CHECK((node == "w1" || node == "w2"));
  }
  CHECK(next == last + 1);
}

TEST_SUITE_BEGIN("more");

TEST_CASE("a job ends as its task does") {
  cluster c;
  c.start_controller();
  c.join_worker("w1");

  SUBCASE("with its exit code") {
    auto job = c.submit({}, {"sh", "-c", "echo before the end; exit 7"});
    CHECK(c.wait(job) == 7);
    CHECK(c.summary(job)["state"] == "failed");
    auto task = c.tasks(job)[0];
    CHECK(task["exit_code"] == 7);
    CHECK(task["signal"] == 0);
    CHECK(c.output(job) == "before the end\n");
    CHECK(has(c.troupe({"wait", job}).out, "exit status 7"));
  }
  SUBCASE("with the signal that killed it") {
    auto job = c.submit({}, {"sh", "-c", "kill -SEGV $$"});
    CHECK(c.wait(job) == 128 + SIGSEGV);
    auto task = c.tasks(job)[0];
    CHECK(task["signal"] == SIGSEGV);
    CHECK(task["exit_code"] == -1);
  }
  SUBCASE("with the failure of lowest index") {
    auto job = c.submit({"--array", "0-9"}, {"sh", "-c",
                                             "[ $TROUPE_TASK_INDEX -lt 3 ] || exit "
                                             "$((TROUPE_TASK_INDEX + 20))"});
    CHECK(c.wait(job) == 23);
    auto summary = c.summary(job);
    CHECK(summary["failed"] == 7);
    CHECK(summary["succeeded"] == 3);
  }
  SUBCASE("when there is no such program") {
    auto job = c.submit({}, {"no-such-program", "x"});
    CHECK(c.wait(job) == 125);
    CHECK(has(c.tasks(job)[0]["reason"], "no-such-program"));
    CHECK(has(c.ask({"job", job}), "No such file"));
  }
  SUBCASE("when its directory is not there") {
    auto job = c.submit({"--cwd", "/no/such/directory"}, {"true"});
    CHECK(c.wait(job) == 125);
    CHECK(has(c.tasks(job)[0]["reason"], "/no/such/directory"));
  }
  SUBCASE("with --wait at once") {
    auto how = c.troupe({"submit", "--wait", "--", "sh", "-c", "exit 9"});
    CHECK(how.code == 9);
    how = c.troupe({"submit", "--wait", "--", "true"});
    CHECK(how.code == 0);
    CHECK(has(how.out, "succeeded"));
  }
}

TEST_CASE("a task gets its arguments, its directory and its environment unchanged") {
  cluster c;
  c.start_controller();
  c.join_worker("w1");
  words arguments{"a b",
                  "it's",
                  "\"q\" \\ $HOME `x` *",
                  "two\nlines",
                  "",
                  "tab\t",
                  "\xc3\xbc\xe2\x86\x92\xf0\x9f\x8e\xad",
                  "--",
                  "-n",
                  "\xff\x01"};

  SUBCASE("arguments") {
    words command{"printf", "%s\\n"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    for (auto& options :
         {words{}, words{"--clean-env", "--env", "PATH"}}) { // a long body, a short one
      auto job = c.submit(options, command);
      CHECK(c.wait(job) == 0);
      CHECK(c.output(job) == joined(arguments));
    }
  }
  SUBCASE("the directory, by default that of the caller") {
    auto job = c.submit({}, {"pwd"});
    CHECK(c.wait(job) == 0);
    CHECK(c.output(job) == c.scratch().string() + "\n");
    job = c.submit({"--cwd", "/usr"}, {"pwd"});
    CHECK(c.wait(job) == 0);
    CHECK(c.output(job) == "/usr\n");
    auto odd = c.scratch() / "with space and \xc3\xbc";
    std::filesystem::create_directory(odd);
    job = c.submit({"--cwd", odd.string()}, {"pwd"});
    CHECK(c.wait(job) == 0);
    CHECK(c.output(job) == odd.string() + "\n");
  }
  SUBCASE("the environment, all of it") {
    auto job = c.submit({"--env", "GIVEN=1 = one\ntwo", "--env", "EMPTY="}, {"env", "-0"});
    CHECK(c.wait(job) == 0);
    auto seen = c.output(job);
    using namespace std::string_literals;
    CHECK(has(seen, "GIVEN=1 = one\ntwo\0"s));
    CHECK(has(seen, "EMPTY=\0"s));
    for (auto& entry : c.environment())
      CHECK(has(seen, entry + "\0"s));
  }
  SUBCASE("the environment, only what is given") {
    auto job = c.submit(
        {"--clean-env", "--env", "PATH", "--env", "GIVEN=x", "--cpus", "2", "--array", "3-3"},
        {"sh", "-c", "env | grep -v -e ^PWD= -e ^PATH= -e ^_= | sort"});
    CHECK(c.wait(job) == 0);
    CHECK(c.output(job, 3) == "GIVEN=x\nTROUPE_CPUS=2\nTROUPE_JOB_ID=" + job +
                                  "\nTROUPE_NODE_ID=w1\nTROUPE_TASK_ATTEMPT=1\n"
                                  "TROUPE_TASK_INDEX=3\n");
  }
}

TEST_CASE("what a task leaves running is killed with its end") {
  cluster c;
  c.start_controller();
  c.join_worker("w1");
  auto job = c.submit({}, {"sh", "-c", "sleep 1000 & echo started"});
  CHECK(c.wait(job) == 0);
  CHECK(c.output(job) == "started\n");
  c.await_no_tasks();
}

TEST_CASE("a job is cancelled") {
  cluster c;
  c.start_controller();
  c.join_worker("w1");

  SUBCASE("while some of it runs") {
    auto job = c.submit({"--array", "0-9"}, {"sleep", "1000"});
    c.await_running(job, 2);
    auto waiting = c.start_troupe({"wait", job});
    CHECK(has(c.ask({"cancel", job}), "job " + job));
    CHECK(waiting->wait().code == 130);
    c.await_no_tasks();
    auto summary = c.summary(job);
    CHECK(summary["state"] == "cancelled");
    CHECK(summary["cancelled"] == 10);
    CHECK(summary["running"] == 0);
    CHECK(c.wait(job) == 130);
    auto again = c.troupe({"cancel", job});
    CHECK(again.code == 1);
    CHECK(has(again.err, "cancelled"));
  }
  SUBCASE("a task that ignores what it can") {
    auto job = c.submit({}, {"sh", "-c", "trap '' TERM INT HUP; while :; do sleep 1; done"});
    c.await_running(job, 1);
    c.ask({"cancel", job});
    CHECK(c.wait(job) == 130);
    c.await_no_tasks();
  }
  SUBCASE("one that has not begun") {
    auto first = c.submit({"--cpus", "2"}, {"sleep", "1000"});
    auto second = c.submit({}, {"true"});
    c.await_running(first, 1);
    c.ask({"cancel", second});
    CHECK(c.wait(second) == 130);
    CHECK(c.summary(first)["state"] == "running");
    c.ask({"cancel", first});
    CHECK(c.wait(first) == 130);
    auto third = c.submit({"--cpus", "2"}, {"true"}); // nothing is still taken
    CHECK(c.wait(third) == 0);
  }
  SUBCASE("not one that has ended, or that there is not") {
    auto job = c.submit({}, {"true"});
    CHECK(c.wait(job) == 0);
    auto ended = c.troupe({"cancel", job});
    CHECK(ended.code == 1);
    CHECK(has(ended.err, "succeeded"));
    auto unknown = c.troupe({"cancel", "4711"});
    CHECK(unknown.code == 1);
    CHECK(has(unknown.err, "4711"));
    CHECK(c.summary(job)["state"] == "succeeded");
  }
}

TEST_CASE("a job that no node can hold waits, and says why") {
  cluster c;
  c.start_controller();
  auto job = c.submit({"--cpus", "3"}, {"true"});
  CHECK_FALSE(c.summary(job)["waiting"].get<std::string>().empty());
  c.join_worker("w1");
  CHECK(c.wait(c.submit({}, {"true"})) == 0); // it holds up nobody
  auto summary = c.summary(job);
  CHECK(summary["state"] == "queued");
  CHECK(has(summary["waiting"], "3"));
  CHECK(has(c.ask({"jobs"}), summary["waiting"].get<std::string>()));
  c.join_worker("w2", {"--worker-cpus", "3"});
  CHECK(c.wait(job) == 0);
  CHECK(c.tasks(job)[0]["node"] == "w2");
}

TEST_CASE("many short tasks, and two clients at once") {
  cluster c;
  c.start_controller();
  c.join_worker("w1", {"--worker-cpus", "4"});
  c.join_worker("w2", {"--worker-cpus", "4"});
  constexpr int count = 300;
  words command{"sh", "-c", "echo $1 $TROUPE_TASK_INDEX", "sh"};
  auto start = [&](const std::string& name) {
    words all{"submit", "--wait", "--array", "0-299", "--name", name, "--"};
    all.insert(all.end(), command.begin(), command.end());
    all.push_back(name);
    return c.start_troupe(all);
  };
  auto one = start("one");
  auto two = start("two");
  for (auto client : {one.get(), two.get()}) {
    auto how = client->wait();
    CHECK(how.code == 0);
    CHECK(how.err.empty());
  }
  auto jobs = c.ask_json({"jobs"});
  REQUIRE(jobs.size() == 2);
  for (auto& job : jobs) {
    CHECK(job["succeeded"] == count);
    auto name = job["name"].get<std::string>();
    std::string expected;
    for (int i = 0; i < count; ++i)
      expected += name + ' ' + std::to_string(i) + '\n';
    CHECK(c.ask({"output", std::to_string(job["id"].get<uint64_t>()), "--all"}) == expected);
  }
  CHECK(has(c.ask({"send", "resources", "show"}), "0 granted"));
}
