// Nodes that die, or sleep, while tasks run.
#include "cluster.hpp"

#include <csignal>
#include <doctest/doctest.h>
#include <string>
#include <thread>

using namespace cluster_test;

namespace {

constexpr auto task = "until [ -e go ] || [ -e go.$TROUPE_TASK_INDEX ]; do sleep 0.1; done; "
                      "echo $TROUPE_TASK_INDEX by $TROUPE_NODE_ID, attempt $TROUPE_TASK_ATTEMPT";

/// Tasks that end when there is a file "go", or one for them alone.
std::string submit_waiting(const cluster& c, int count) {
  return c.submit({"--array", "0-" + std::to_string(count - 1)}, {"sh", "-c", task});
}

/// Likewise, tasks that fail when they run twice at once.
std::string submit_exclusive(const cluster& c, int count) {
  return c.submit({"--array", "0-" + std::to_string(count - 1)},
                  {"sh", "-c",
                   "exec 9>lock.$TROUPE_JOB_ID.$TROUPE_TASK_INDEX && flock -n 9 || exit 99; " +
                       std::string{task}});
}

void let_go(const cluster& c, const std::string& index = {}) {
  write_file(c.scratch() / (index.empty() ? "go" : "go." + index), "");
}

/// Checks that each task ended well, once, and that its output is that of the attempt which counts.
/// @returns how many were started again.
int check_all_right(const cluster& c, const std::string& job, int count) {
  auto summary = c.summary(job);
  CHECK(summary["state"] == "succeeded");
  CHECK(summary["succeeded"] == count);
  CHECK(summary["failed"] == 0);
  int again = 0;
  auto tasks = c.tasks(job);
  REQUIRE(tasks.size() == static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    auto& one = tasks[static_cast<size_t>(i)];
    CHECK(one["index"] == i);
    CHECK(one["state"] == "succeeded");
    auto attempt = one["attempt"].get<int>();
    again += attempt - 1;
    CHECK(c.output(job, i) == std::to_string(i) + " by " + one["node"].get<std::string>() +
                                  ", attempt " + std::to_string(attempt) + "\n");
  }
  CHECK(summary["restarts"] == again);
  return again;
}

/// A node that is shown as dead or gone has not this incarnation alive.
uint64_t incarnation_of(const cluster& c, const std::string& id) {
  auto node = c.live_node(id);
  return node.is_null() ? 0 : node["incarnation"].get<uint64_t>();
}

} // namespace

TEST_CASE("kill -9 of a worker: every task ends once, elsewhere" *
          doctest::test_suite("essential")) {
  cluster c;
  c.start_controller();
  auto& victim = c.join_worker("w1");
  c.join_worker("w2");
  auto job = submit_waiting(c, 12);
  c.await_running(job, 4);
  CHECK_FALSE(c.task_processes("w1").empty());
  victim.kill();
  c.await_no_tasks("w1");
  await("its tasks are taken back", [&] { return c.summary(job)["running"] == 2; });
  CHECK(c.live_node("w1").is_null());
  c.join_worker("w1"); // a new one under the same name
  await("they are started again", [&] { return c.summary(job)["restarts"] == 2; });
  let_go(c);
  CHECK(c.wait(job) == 0);
  CHECK(check_all_right(c, job, 12) == 2);
}

TEST_CASE("kill -9 of the controller: commands and workers end and say why" *
          doctest::test_suite("essential")) {
  cluster c;
  auto& head = c.start_controller();
  auto& w1 = c.join_worker("w1", {"--membership-rejoin-for", "1s"});
  auto& w2 = c.join_worker("w2", {"--membership-rejoin-for", "1s"});
  auto job = submit_waiting(c, 4);
  c.await_running(job, 4);
  auto waiting = c.start_troupe({"wait", job});
  auto watching = c.start_troupe({"wait", "--progress", job});
  await("it waits", [&] { return !watching->err().empty(); });
  head.kill();
  for (auto client : {waiting.get(), watching.get()}) {
    auto how = client->wait();
    CHECK(how.code == 3);
    CHECK(has(how.err, "went away"));
  }
  c.await_no_tasks();
  for (auto worker : {&w1, &w2}) {
    auto how = worker->wait();
    CHECK(how.code == 1);
    CHECK(has(how.err, "no controller at " + c.address()));
  }
  auto late = c.troupe({"jobs"});
  CHECK(late.code == 3);
  CHECK(has(late.err, "no controller at " + c.address()));
}

TEST_SUITE_BEGIN("more");

TEST_CASE("a worker that sleeps is declared dead, and comes back as a new one") {
  cluster c;
  SUBCASE("its tasks are killed, then it is dead") {
    c.start_controller({"--membership-heartbeat", "100ms", "--monitor-interval", "100ms",
                        "--membership-suspect-after", "2s", "--membership-lease", "3s",
                        "--membership-dead-after", "6s"});
  }
  SUBCASE("it is dead, then its tasks are killed") {
    c.start_controller({"--membership-heartbeat", "100ms", "--monitor-interval", "100ms",
                        "--membership-suspect-after", "2s", "--membership-lease", "6s",
                        "--membership-dead-after", "3s"});
  }
  auto& sleeper = c.join_worker("w1");
  auto before = incarnation_of(c, "w1");
  auto job = submit_exclusive(c, 2); // both go to w1
  c.await_running(job, 2);
  c.join_worker("w2");
  sleeper.signal(SIGSTOP);
  await("its tasks run elsewhere", [&] {
    auto summary = c.summary(job);
    return summary["restarts"] == 2 && summary["running"] == 2;
  });
  CHECK(c.task_processes("w1").empty()); // though it still sleeps
  CHECK(incarnation_of(c, "w1") == 0);
  await("the new attempts have processes", [&] { return c.task_processes("w2").size() >= 2; });
  let_go(c, "0");
  await("one ends", [&] { return c.summary(job)["succeeded"] == 1; });

  sleeper.signal(SIGCONT);
  await("it joins again", [&] {
    auto now = incarnation_of(c, "w1");
    return now != 0 && now != before;
  });
  auto summary = c.summary(job);
  CHECK(summary["succeeded"] == 1);
  CHECK(summary["running"] == 1);
  let_go(c);
  CHECK(c.wait(job) == 0);
  CHECK(check_all_right(c, job, 2) == 2);
  for (auto& one : c.tasks(job))
    CHECK(one["node"] == "w2");
  auto both = submit_exclusive(c, 8); // it takes tasks again
  CHECK(c.wait(both) == 0);
  CHECK(check_all_right(c, both, 8) == 0);
}

TEST_CASE("a worker that sleeps past the lease of its tasks, and wakes before it is dead") {
  cluster c;
  c.start_controller({"--membership-heartbeat", "100ms", "--monitor-interval", "100ms",
                      "--membership-lease", "2s", "--membership-dead-after", "10m"});
  auto& sleeper = c.join_worker("w1");
  auto before = incarnation_of(c, "w1");
  auto job = submit_exclusive(c, 4);
  c.await_running(job, 2);
  sleeper.signal(SIGSTOP);
  c.await_no_tasks("w1");
  CHECK(c.summary(job)["running"] == 2); // nobody has told
  sleeper.signal(SIGCONT);
  await("it joins again", [&] {
    auto now = incarnation_of(c, "w1");
    return now != 0 && now != before;
  });
  CHECK(has(sleeper.err(), "the lease of the 2 tasks here ended"));
  let_go(c);
  CHECK(c.wait(job) == 0);
  CHECK(check_all_right(c, job, 4) == 2);
}

TEST_CASE("a controller that sleeps past the lease of the tasks") {
  cluster c;
  auto& head = c.start_controller({"--membership-heartbeat", "100ms", "--monitor-interval", "100ms",
                                   "--membership-lease", "2s", "--scheduler-retries", "100"});
  c.join_worker("w1", {"--membership-rejoin-for", "10m"});
  c.join_worker("w2", {"--membership-rejoin-for", "10m"});
  auto job = submit_exclusive(c, 6);
  c.await_running(job, 4);
  head.signal(SIGSTOP);
  c.await_no_tasks(); // for all that the workers know, others run them
  head.signal(SIGCONT);
  for (auto id : {"w1", "w2"})
    await("a worker joins again", [&] { return !c.live_node(id).is_null(); });
  let_go(c);
  CHECK(c.wait(job) == 0);
  CHECK(check_all_right(c, job, 6) >= 4);
}

TEST_CASE("a worker that was killed starts again at once under its id") {
  cluster c;
  auto& head = c.start_controller();
  auto& first = c.join_worker("w1");
  auto before = incarnation_of(c, "w1");
  auto job = submit_waiting(c, 4);
  c.await_running(job, 2);
  SUBCASE("the controller looks on") {
    first.kill();
    c.start_worker("w1");
  }
  SUBCASE("the controller learns of both at once") {
    head.signal(SIGSTOP);
    first.kill();
    c.start_worker("w1");
    std::this_thread::sleep_for(std::chrono::seconds{1}); // that it asks meanwhile
    head.signal(SIGCONT);
  }
  await("it joins as a new one", [&] {
    auto now = incarnation_of(c, "w1");
    return now != 0 && now != before;
  });
  let_go(c);
  CHECK(c.wait(job) == 0);
  CHECK(check_all_right(c, job, 4) == 2);
}

TEST_CASE("the id of a worker that sleeps goes to another, and is refused to it when it wakes") {
  cluster c;
  c.start_controller({"--membership-heartbeat", "100ms", "--monitor-interval", "100ms",
                      "--membership-suspect-after", "2s", "--membership-dead-after", "4s"});
  auto& sleeper = c.join_worker("w1");
  auto before = incarnation_of(c, "w1");
  sleeper.signal(SIGSTOP);
  c.start_worker("w1");
  await("the other joins", [&] {
    auto now = incarnation_of(c, "w1");
    return now != 0 && now != before;
  });
  sleeper.signal(SIGCONT);
  auto how = sleeper.wait();
  CHECK(how.code == 1);
  CHECK(has(how.err, "'w1' is taken"));
  CHECK(c.wait(c.submit({}, {"true"})) == 0);
}

TEST_CASE("a worker that sleeps shortly loses nothing") {
  cluster c;
  c.start_controller({"--membership-heartbeat", "100ms", "--monitor-interval", "100ms",
                      "--membership-suspect-after", "1s", "--membership-dead-after", "10m",
                      "--membership-lease", "10m"});
  auto& sleeper = c.join_worker("w1");
  auto before = incarnation_of(c, "w1");
  auto job = submit_waiting(c, 4);
  c.await_running(job, 2);
  sleeper.signal(SIGSTOP);
  await("it is suspect", [&] { return c.live_node("w1")["state"] == "suspect"; });
  let_go(c);
  c.await_no_tasks("w1"); // they end meanwhile
  sleeper.signal(SIGCONT);
  CHECK(c.wait(job) == 0);
  CHECK(check_all_right(c, job, 4) == 0);
  CHECK(incarnation_of(c, "w1") == before);
  await("it is trusted again", [&] { return c.live_node("w1")["state"] == "alive"; });
}

TEST_CASE("a controller that sleeps loses no worker") {
  cluster c;
  auto& head = c.start_controller({"--membership-heartbeat", "100ms", "--monitor-interval", "100ms",
                                   "--membership-suspect-after", "1s", "--membership-dead-after",
                                   "2s", "--membership-lease", "10m"});
  c.join_worker("w1");
  c.join_worker("w2");
  auto job = submit_waiting(c, 8);
  c.await_running(job, 4);
  auto before = incarnation_of(c, "w1");
  head.signal(SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds{3}); // longer than what makes a worker dead
  let_go(c);
  c.await_no_tasks(); // they end meanwhile
  head.signal(SIGCONT);
  CHECK(c.wait(job) == 0);
  CHECK(check_all_right(c, job, 8) == 0);
  CHECK(incarnation_of(c, "w1") == before);
}

TEST_CASE("a worker that sleeps does not keep the cluster from ending") {
  cluster c;
  auto& head = c.start_controller();
  auto& sleeper = c.join_worker("w1", {"--membership-rejoin-for", "1s"});
  auto& worker = c.join_worker("w2");
  auto job = submit_waiting(c, 4);
  c.await_running(job, 4);
  sleeper.signal(SIGSTOP);
  c.ask({"shutdown"});
  CHECK(worker.wait().code == 0);
  CHECK(head.wait().code == 0);
  sleeper.signal(SIGCONT);
  sleeper.wait(); // well if the farewell has reached it, else without a controller
  c.await_no_tasks();
}

TEST_CASE("kill -9 of a worker while its long outputs are read") {
  cluster c;
  c.start_controller({"--membership-lease", "5s", "--scheduler-retries", "100"});
  auto& victim = c.join_worker("w1", {"--worker-cpus", "4"});
  write_file(c.scratch() / "long", std::string(16 << 20, 'x') + "end");
  auto job = c.submit({"--array", "0-11"}, {"cat", "long"});
  await("some have ended", [&] { return c.summary(job)["succeeded"] > 1; });
  victim.kill();
  c.join_worker("w2", {"--worker-cpus", "4"});
  CHECK(c.wait(job) == 0);
  auto expected = read_file(c.scratch() / "long");
  for (int i = 0; i < 12; ++i)
    CHECK((c.output(job, i) == expected));
}

TEST_CASE("workers come back to a controller that was started again") {
  cluster c;
  auto& head = c.start_controller();
  c.join_worker("w1", {"--membership-rejoin-for", "10m"});
  c.join_worker("w2", {"--membership-rejoin-for", "10m"});
  auto job = submit_waiting(c, 4);
  c.await_running(job, 4);
  auto port = c.port();
  head.kill();
  c.await_no_tasks();
  c.start_controller({}, port);
  for (auto id : {"w1", "w2"})
    await("a worker joins again", [&] { return !c.live_node(id).is_null(); });
  CHECK(c.ask_json({"jobs"}).empty()); // they lived in the old one's memory
  let_go(c);
  auto next = submit_waiting(c, 12);
  CHECK(c.wait(next) == 0);
  CHECK(check_all_right(c, next, 12) == 0);
}

TEST_CASE("a task whose workers die too often fails, with the reason") {
  cluster c;
  SUBCASE("no retries") {
    c.start_controller({"--scheduler-retries", "0"});
    auto& victim = c.join_worker("w1");
    auto job = submit_waiting(c, 1);
    c.await_running(job, 1);
    victim.kill();
    CHECK(c.wait(job) == 125);
    auto one = c.tasks(job)[0];
    CHECK(one["state"] == "failed");
    CHECK(one["attempt"] == 1);
    CHECK(has(one["reason"], "w1"));
    CHECK(has(c.ask({"job", job}), "w1"));
  }
  SUBCASE("one") {
    c.start_controller({"--scheduler-retries", "1"});
    std::string job;
    for (auto id : {"w1", "w2"}) {
      auto& victim = c.join_worker(id);
      if (job.empty())
        job = submit_waiting(c, 1);
      c.await_running(job, 1);
      victim.kill();
      c.await_no_tasks();
    }
    CHECK(c.wait(job) == 125);
    auto one = c.tasks(job)[0];
    CHECK(one["attempt"] == 2);
    CHECK(has(one["reason"], "w2"));
    CHECK(c.summary(job)["restarts"] == 1);
  }
}

TEST_CASE("kill -9 of a guardian: its tasks run again") {
  cluster c;
  c.start_controller();
  auto& worker = c.join_worker("w1");
  auto before = incarnation_of(c, "w1");
  auto job = submit_waiting(c, 4);
  c.await_running(job, 2);
  // The guardian is the only child; which of the threads has made it is not known.
  pid_t guardian = 0;
  for (auto& thread :
       std::filesystem::directory_iterator{"/proc/" + std::to_string(worker.id()) + "/task"})
    if (auto text = read_file(thread.path() / "children"); !text.empty())
      guardian = std::stoi(text);
  REQUIRE(guardian > 0);
  REQUIRE(::kill(guardian, SIGKILL) == 0);
  await("the worker joins again", [&] {
    auto now = incarnation_of(c, "w1");
    return now != 0 && now != before;
  });
  let_go(c);
  CHECK(c.wait(job) == 0);
  CHECK(check_all_right(c, job, 4) == 2);
}
