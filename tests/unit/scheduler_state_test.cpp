#include <doctest/doctest.h>
#include <string>
#include <troupe/actors/scheduler_state.hpp>
#include <vector>

using namespace troupe;
using namespace troupe::cluster;
using namespace std::chrono_literals;

namespace {

constexpr uint64_t gib = uint64_t{1} << 30;
const wall_time now{1h};

/// A scheduler with its book.
struct fixture {
  resource_book book;
  scheduler_state state{book, {2, 1}};

  void join(incarnation_id node, uint32_t cpus, uint32_t slots = 64, uint64_t memory = 8 * gib) {
    REQUIRE(state.on_node_joined(node, "w" + std::to_string(node), {cpus, memory, slots}));
  }

  job_id submit(uint32_t first, uint32_t last, uint32_t cpus = 1, uint64_t memory = 0) {
    job_spec spec;
    spec.argv = {"/bin/true"};
    spec.cpus = cpus;
    spec.memory = memory;
    spec.array = task_range{first, last};
    auto id = state.submit(spec, now);
    REQUIRE(id);
    return *id;
  }

  std::vector<assignment> assign() { return state.next_assignments(now); }

  finish_verdict finish(const assignment& what, int32_t exit_code = 0, int32_t signal = 0) {
    task_outcome outcome;
    outcome.exit_code = exit_code;
    outcome.signal = signal;
    return state.on_finished(what, outcome, now + 1s);
  }
};

/// "job.task ..." in the order of `what`.
std::string order(const std::vector<assignment>& what) {
  std::string text;
  for (auto& a : what)
    text += (text.empty() ? "" : " ") + std::to_string(a.job) + '.' + std::to_string(a.task);
  return text;
}

} // namespace

TEST_CASE_FIXTURE(fixture, "a job runs from submission to its end") {
  join(7, 2);
  job_spec spec;
  spec.name = "hello";
  spec.argv = {"echo", "hello"};
  auto id = state.submit(spec, now);
  REQUIRE(id);
  CHECK(*id == 1);
  CHECK(state.spec(1)->argv.at(1) == "hello");
  CHECK(state.job(1)->state == run_state::queued);
  CHECK(state.job(1)->waiting == "waits until a node has 1 CPU free");

  auto started = assign();
  REQUIRE(started.size() == 1);
  CHECK(started[0] == assignment{1, 0, 1, 7, 0});
  CHECK(state.running() == started);
  CHECK(state.job(1)->state == run_state::running);
  CHECK(state.job(1)->waiting.empty());
  CHECK(book.find(7)->free.cpus == 1);
  CHECK(assign().empty());

  task_outcome outcome;
  outcome.stdout_bytes = 6;
  outcome.stderr_bytes = 2;
  outcome.elapsed = 5ms;
  auto verdict = state.on_finished(started[0], outcome, now + 3s);
  CHECK(verdict.accepted);
  CHECK(verdict.job_ended);
  auto job = *state.job(1);
  CHECK(job.name == "hello");
  CHECK(job.state == run_state::succeeded);
  CHECK(job.exit_status == 0);
  CHECK(job.tasks == task_counters{0, 0, 1, 0, 0});
  CHECK(job.submitted == now);
  CHECK(job.ended == now + 3s);
  auto task = *state.task(1, 0);
  CHECK(task.state == run_state::succeeded);
  CHECK(task.node == "w7");
  CHECK(task.incarnation == 7);
  CHECK(task.attempt == 1);
  CHECK(task.outcome.stdout_bytes == 6);
  CHECK(task.outcome.stderr_bytes == 2);
  CHECK(task.outcome.elapsed == 5ms);
  CHECK(task.started == now);
  CHECK(task.ended == now + 3s);
  CHECK(book.find(7)->free.cpus == 2);
}

TEST_CASE_FIXTURE(fixture, "as many tasks run as CPUs, memory and slots allow") {
  SUBCASE("CPUs") {
    join(1, 3);
    submit(0, 9);
    CHECK(assign().size() == 3);
  }
  SUBCASE("several CPUs each") {
    join(1, 5);
    submit(0, 9, 2);
    CHECK(assign().size() == 2);
  }
  SUBCASE("memory") {
    join(1, 64);
    submit(0, 9, 1, 3 * gib);
    CHECK(assign().size() == 2);
  }
  SUBCASE("slots") {
    join(1, 64, 4);
    submit(0, 9);
    auto started = assign();
    REQUIRE(started.size() == 4);
    CHECK(started[3].slot == 3);
    finish(started[1]);
    auto next = assign();
    REQUIRE(next.size() == 1);
    CHECK(next[0].slot == 1);
    CHECK(next[0].task == 4);
  }
  SUBCASE("spread over the nodes") {
    join(1, 2);
    join(2, 2);
    submit(0, 9);
    auto started = assign();
    REQUIRE(started.size() == 4);
    CHECK(started[0].node != started[1].node);
  }
  CHECK(assign().empty());
  CHECK(book.balanced());
}

TEST_CASE_FIXTURE(fixture, "jobs are served in order of submission, tasks in order of index") {
  join(1, 3);
  submit(5, 6);
  submit(0, 1);
  submit(0, 0);
  auto first = assign();
  CHECK(order(first) == "1.5 1.6 2.0");
  finish(first[0]);
  CHECK(order(assign()) == "2.1");
  finish(first[1]);
  CHECK(order(assign()) == "3.0");
}

TEST_CASE_FIXTURE(fixture, "a large job is not starved by small ones, which use other nodes") {
  join(1, 4);
  join(2, 4);
  submit(0, 7);          // fills both nodes
  submit(0, 0, 4);       // needs a whole node
  submit(0, 99);         // small ones behind it
  auto small = assign(); // two tasks on each node in turn
  REQUIRE(small.size() == 8);
  // One CPU gets free: its node is kept for the large job.
  finish(small[0]);
  CHECK(assign().empty());
  auto kept = small[0].node;
  // The other node goes on with small tasks.
  for (size_t i = 1; i < small.size(); ++i)
    if (small[i].node != kept) {
      finish(small[i]);
      auto next = assign();
      REQUIRE(next.size() == 1);
      CHECK(next[0].job == 3);
      CHECK(next[0].node != kept);
      break;
    }
  for (size_t i = 1; i < small.size(); ++i)
    if (small[i].node == kept)
      finish(small[i]);
  auto large = assign();
  REQUIRE_FALSE(large.empty());
  CHECK(large[0].job == 2);
  CHECK(large[0].node == kept);
}

TEST_CASE_FIXTURE(fixture, "a job that no node could run says why and holds up nobody") {
  submit(0, 0);
  CHECK(state.job(1)->waiting == "there is no worker in the cluster");
  join(1, 4, 64, 2 * gib);
  auto too_wide = submit(0, 0, 8);
  auto too_big = submit(0, 0, 1, 16 * gib);
  auto small = submit(0, 0);
  CHECK(order(assign()) == "1.0 4.0");
  CHECK(state.job(too_wide)->waiting == "needs 8 CPUs; the largest node has 4");
  CHECK(state.job(too_big)->waiting == "needs 16GiB of memory; the largest node has 2GiB");
  CHECK(state.job(small)->waiting.empty());

  join(2, 1, 64, 32 * gib);
  CHECK(order(assign()) == "3.0");
  auto both = submit(0, 0, 2, 4 * gib);
  CHECK(assign().empty());
  CHECK(state.job(both)->waiting ==
        "needs 2 CPUs and 4GiB of memory on one node; no node has both");
  join(3, 8, 64, 32 * gib);
  CHECK(order(assign()) == "2.0");
  CHECK(state.job(both)->waiting == "waits until a node has 2 CPUs and 4GiB of memory free");
}

TEST_CASE_FIXTURE(fixture, "a report is accepted once, and only from whom the task was given to") {
  join(1, 2);
  join(2, 2);
  submit(0, 2);
  auto started = assign();
  REQUIRE(started.size() == 3);
  auto right = started[0];
  auto wrong = [&](auto change) {
    auto report = right;
    change(report);
    auto verdict = finish(report);
    CHECK_FALSE(verdict.accepted);
    CHECK_FALSE(verdict.why_not.empty());
  };
  wrong([](assignment& a) { a.node = 99; });
  wrong([](assignment& a) { a.node = 3 - a.node; });
  wrong([](assignment& a) { a.slot = 63; });
  wrong([](assignment& a) { a.slot = UINT32_MAX; });
  wrong([](assignment& a) { a.attempt = 2; });
  wrong([](assignment& a) { a.task = 1; });
  wrong([](assignment& a) { a.job = 2; });
  CHECK(finish(right).accepted);
  auto again = finish(right, 1);
  CHECK_FALSE(again.accepted);
  CHECK(again.why_not ==
        "task 0 of job 1, attempt 1: slot 0 of node 'w" + std::to_string(right.node) + "' is idle");
  CHECK(state.task(1, 0)->state == run_state::succeeded);
  CHECK(state.totals() == task_counters{0, 2, 1, 0, 0});
}

TEST_CASE_FIXTURE(fixture, "the tasks of a lost worker come back in their places") {
  join(1, 3);
  submit(0, 1);
  submit(0, 3);
  CHECK(order(assign()) == "1.0 1.1 2.0");
  auto loss = state.on_node_lost(1, departure::died, now);
  CHECK(loss.requeued == std::vector<task_ref>{{1, 0}, {1, 1}, {2, 0}});
  CHECK(loss.failed.empty());
  CHECK_FALSE(book.find(1));
  CHECK(state.running().empty());
  CHECK(state.on_node_lost(1, departure::died, now).requeued.empty());
  CHECK(state.task(1, 0)->state == run_state::queued);

  join(2, 4);
  auto again = assign();
  CHECK(order(again) == "1.0 1.1 2.0 2.1");
  CHECK(again[0].attempt == 2);
  CHECK(again[3].attempt == 1);
  // What the lost worker still says is ignored.
  CHECK_FALSE(finish({1, 0, 1, 1, 0}, 5).accepted);
  CHECK(finish(again[0]).accepted);
  CHECK(state.job(1)->restarts == 2);
  CHECK(state.task(1, 0)->node == "w2");
}

TEST_CASE_FIXTURE(fixture, "a task that loses its worker too often fails") {
  submit(0, 0);
  for (incarnation_id node = 1; node <= 3; ++node) {
    join(node, 1);
    auto started = assign();
    REQUIRE(started.size() == 1);
    CHECK(started[0].attempt == node);
    auto loss = state.on_node_lost(node, departure::died, now + 9s);
    if (node < 3) {
      CHECK(loss.requeued.size() == 1);
    } else {
      CHECK(loss.failed == std::vector<task_ref>{{1, 0}});
      CHECK(loss.ended == std::vector<job_id>{1});
    }
  }
  auto job = *state.job(1);
  CHECK(job.state == run_state::failed);
  CHECK(job.exit_status == 125);
  CHECK(job.ended == now + 9s);
  CHECK(state.task(1, 0)->outcome.failure ==
        "worker lost: node 'w3' was gone before the task ended");
}

TEST_CASE_FIXTURE(fixture, "a worker that leaves in order costs its tasks no retries") {
  submit(0, 1);
  for (incarnation_id node = 1; node <= 5; ++node) {
    join(node, 2);
    REQUIRE(assign().size() == 2);
    auto loss = state.on_node_lost(node, departure::left, now);
    CHECK(loss.requeued == std::vector<task_ref>{{1, 0}, {1, 1}});
    CHECK(loss.failed.empty());
  }
  CHECK(state.task(1, 0)->attempt == 5);
  CHECK(state.job(1)->restarts == 8);
  for (incarnation_id node = 6; node <= 7; ++node) { // deaths do, and they alone
    join(node, 2);
    assign();
    CHECK(state.on_node_lost(node, departure::died, now).requeued.size() == 2);
  }
  join(8, 2);
  assign();
  CHECK(state.cancel(1, now)->to_kill.size() == 2);
  auto loss = state.on_node_lost(8, departure::left, now);
  CHECK(loss.cancelled == std::vector<task_ref>{{1, 0}, {1, 1}});
  CHECK(loss.ended == std::vector<job_id>{1});
  CHECK(state.job(1)->state == run_state::cancelled);
}

TEST_CASE_FIXTURE(fixture, "a job's exit status is that of its first failed task") {
  join(1, 8);
  SUBCASE("by index, not by time") {
    submit(0, 3);
    auto started = assign();
    finish(started[3], 4);
    finish(started[2], 0, 15);
    finish(started[1]);
    CHECK_FALSE(state.job(1)->exit_status);
    finish(started[0]);
    CHECK(state.job(1)->state == run_state::failed);
    CHECK(state.job(1)->exit_status == 143);
    CHECK(state.job(1)->tasks == task_counters{0, 0, 2, 2, 0});
  }
  SUBCASE("an exit code") {
    submit(0, 1);
    auto started = assign();
    finish(started[0], 7);
    finish(started[1], 8);
    CHECK(state.job(1)->exit_status == 7);
  }
  SUBCASE("a program that could not be started") {
    submit(0, 0);
    task_outcome outcome;
    outcome.failure = "cannot start /bin/nonsense: No such file or directory";
    outcome.exit_code = 127;
    CHECK(state.on_finished(assign().at(0), outcome, now).job_ended);
    CHECK(state.job(1)->exit_status == 127);
    CHECK(state.task(1, 0)->outcome.failure == outcome.failure);
  }
}

TEST_CASE_FIXTURE(fixture, "cancelling ends what is queued and kills what runs") {
  join(1, 2);
  submit(0, 9);
  submit(0, 0);
  auto started = assign();
  REQUIRE(started.size() == 2);
  auto cancelled = state.cancel(1, now);
  REQUIRE(cancelled);
  CHECK(cancelled->to_kill == started);
  CHECK_FALSE(cancelled->job_ended);
  CHECK(state.job(1)->state == run_state::running);
  CHECK(state.job(1)->cancel_requested);
  CHECK(state.job(1)->tasks == task_counters{0, 2, 0, 0, 8});
  CHECK(state.task(1, 9)->state == run_state::cancelled);
  CHECK(assign().empty());

  SUBCASE("killed") {
    CHECK(finish(started[0], 0, 15).accepted);
    CHECK(state.cancel(1, now)->to_kill == std::vector<assignment>{started[1]});
    CHECK(finish(started[1], 0, 15).job_ended);
    CHECK(state.job(1)->tasks == task_counters{0, 0, 0, 0, 10});
    CHECK(state.task(1, 0)->outcome.signal == 15);
  }
  SUBCASE("one was done before the signal came") {
    finish(started[0]);
    finish(started[1], 0, 9);
    CHECK(state.job(1)->tasks == task_counters{0, 0, 1, 0, 9});
  }
  SUBCASE("the worker is lost meanwhile") {
    auto loss = state.on_node_lost(1, departure::died, now);
    CHECK(loss.cancelled.size() == 2);
    CHECK(loss.requeued.empty());
    CHECK(loss.ended == std::vector<job_id>{1});
    join(2, 2);
  }
  CHECK(state.job(1)->state == run_state::cancelled);
  CHECK(state.job(1)->exit_status == cancelled_exit_status);
  auto again = state.cancel(1, now);
  REQUIRE_FALSE(again);
  CHECK(again.error().text() == "job 1 has already ended (cancelled)");
  CHECK(order(assign()) == "2.0");
}

TEST_CASE_FIXTURE(fixture, "a job that has not started is cancelled at once") {
  submit(0, 999'999);
  auto cancelled = state.cancel(1, now + 2s);
  REQUIRE(cancelled);
  CHECK(cancelled->job_ended);
  CHECK(state.job(1)->state == run_state::cancelled);
  CHECK(state.job(1)->ended == now + 2s);
  CHECK(state.cancel(5, now).error().code() == errc::not_found);
  join(1, 1);
  CHECK(assign().empty());
}

TEST_CASE_FIXTURE(fixture, "a requeued task of a cancelled job stays cancelled") {
  join(1, 1);
  submit(0, 0);
  assign();
  CHECK(state.on_node_lost(1, departure::died, now).requeued.size() == 1);
  CHECK(state.cancel(1, now)->job_ended);
  CHECK(state.task(1, 0)->state == run_state::cancelled);
  CHECK(state.job(1)->tasks == task_counters{0, 0, 0, 0, 1});
}

TEST_CASE_FIXTURE(fixture, "a worker that does not accept keeps what it has and gets nothing new") {
  join(1, 2);
  submit(0, 1);
  auto started = assign();
  submit(0, 0);
  finish(started[0]);
  state.set_accepting(1, false);
  state.set_accepting(42, false);
  CHECK(assign().empty());
  CHECK(state.job(2)->waiting == "no worker takes new tasks at the moment");
  CHECK(finish(started[1]).accepted);
  state.set_accepting(1, true);
  CHECK(order(assign()) == "2.0");
}

TEST_CASE_FIXTURE(fixture, "what a worker must have to be added") {
  CHECK(state.on_node_joined(1, "a", {0, gib, 1}).error().code() == errc::invalid_argument);
  CHECK(state.on_node_joined(1, "a", {1, gib, 0}).error().code() == errc::invalid_argument);
  CHECK(state.on_node_joined(0, "a", {1, gib, 1}).error().code() == errc::invalid_argument);
  join(1, 1);
  CHECK(state.on_node_joined(1, "a", {1, gib, 1}).error().code() == errc::already_exists);
}

TEST_CASE_FIXTURE(fixture, "views name what is not there") {
  CHECK_FALSE(state.spec(1));
  CHECK(state.job(1).error().code() == errc::not_found);
  CHECK(state.task(1, 0).error().code() == errc::not_found);
  CHECK(state.tasks(1, 0, 1).error().code() == errc::not_found);
  submit(3, 5);
  CHECK(state.task(1, 2).error().text() == "job 1 has no task 2; its tasks are 3 to 5");
  CHECK(state.tasks(1, 0, 100)->size() == 3);
  CHECK(state.tasks(1, 4, 100)->front().task == 4);
  CHECK(state.tasks(1, 0, 2)->size() == 2);
  CHECK(state.tasks(1, 6, 2)->empty());
  CHECK(state.jobs().size() == 1);
}

TEST_CASE_FIXTURE(fixture, "a refused job takes no id") {
  job_spec empty;
  CHECK(state.submit(empty, now).error().code() == errc::invalid_argument);
  CHECK(submit(0, 0) == 1);
}

TEST_CASE_FIXTURE(fixture, "a million tasks are queued, and the last index is usable") {
  constexpr uint32_t last = UINT32_MAX;
  auto id = submit(last - 999'999, last);
  join(1, 256, 256);
  for (int round = 0; round < 40; ++round) {
    auto started = assign();
    REQUIRE(started.size() == 256);
    for (auto& what : started)
      REQUIRE(finish(what).accepted);
  }
  CHECK(state.job(id)->tasks == task_counters{1'000'000 - 40 * 256, 0, 40 * 256, 0, 0});
  CHECK(state.task(id, last)->state == run_state::queued);
  CHECK(state.tasks(id, last - 1, 10)->size() == 2);
  CHECK(state.cancel(id, now)->job_ended);
  CHECK(state.job(id)->tasks.total() == 1'000'000);
}

TEST_CASE_FIXTURE(fixture, "a hundred thousand queued jobs do not slow down a free worker") {
  for (int i = 0; i < 100'000; ++i)
    submit(0, 0);
  join(1, 2);
  for (int i = 0; i < 1000; ++i) {
    auto started = assign();
    REQUIRE(started.size() == 2);
    finish(started[0]);
    finish(started[1]);
  }
  CHECK(state.totals() == task_counters{98'000, 0, 2000, 0, 0});
}
