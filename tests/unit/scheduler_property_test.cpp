// Random histories of the scheduler, checked against what must hold in any of them.
#include <doctest/doctest.h>
#include <map>
#include <random>
#include <set>
#include <troupe/actors/scheduler_state.hpp>
#include <vector>

using namespace troupe;
using namespace troupe::cluster;
using namespace std::chrono_literals;

namespace {

constexpr uint32_t retries = 2;

class history {
public:
  explicit history(unsigned seed) : random_(seed) {}

  void step() {
    now_ += 1s;
    switch (draw(12)) {
    case 0:
    case 1:
      submit();
      break;
    case 2:
      join(draw(4) + 1);
      break;
    case 3:
      lose_some_node();
      break;
    case 4:
      if (draw(3) == 0)
        cancel_some_job();
      break;
    case 5:
      repeat_an_old_report();
      break;
    case 6:
      if (!nodes_.empty())
        state_.set_accepting(some_node(), draw(2) == 0);
      break;
    default:
      if (draw(2) == 0)
        assign();
      else
        finish_some_task();
    }
    check();
  }

  /// Lets everything end: nodes large enough for all jobs join and are not lost.
  void finish_all() {
    for (auto& [node, _] : nodes_)
      state_.set_accepting(node, true);
    join(16);
    for (int round = 0; state_.totals().queued + state_.totals().running != 0; ++round) {
      REQUIRE(round < 100'000);
      assign();
      while (!in_flight_.empty())
        finish_some_task();
      check();
    }
    for (auto& job : state_.jobs()) {
      CHECK(is_final(job.state));
      CHECK(job.exit_status.has_value());
      CHECK(job.tasks.total() == state_.spec(job.id)->task_count());
      CHECK((*job.exit_status == 0) == (job.state == run_state::succeeded));
      for (auto& task : state_.tasks(job.id, 0, 1000).value_or(std::vector<task_info>{}))
        CHECK(is_final(task.state));
    }
    // Every report that was accepted is exactly one recorded end; the others never ran to one.
    for (auto& [what, outcome] : accepted_) {
      auto task = *state_.task(what.job, what.task);
      CHECK(task.outcome.exit_code == outcome);
      CHECK(task.state == (outcome == 0                             ? run_state::succeeded
                           : state_.job(what.job)->cancel_requested ? task.state
                                                                    : run_state::failed));
    }
    CHECK(!accepted_.empty());
  }

private:
  uint32_t draw(size_t bound) { return static_cast<uint32_t>(random_() % bound); }

  void submit() {
    job_spec spec;
    spec.argv = {"x"};
    spec.cpus = draw(6) == 0 ? draw(10) + 1 : 1;
    spec.memory = draw(3) == 0 ? draw(1000) : 0;
    auto first = draw(5);
    spec.array = task_range{first, first + draw(20)};
    auto id = state_.submit(spec, now_);
    REQUIRE(id);
    CHECK(ids_.insert(*id).second);
  }

  void join(uint32_t cpus) {
    node_capacity capacity{cpus, uint64_t{cpus} * 1000, draw(5) + 1};
    REQUIRE(state_.on_node_joined(next_node_, "n" + std::to_string(next_node_ % 3), capacity));
    nodes_[next_node_++] = capacity;
  }

  incarnation_id some_node() { return std::next(nodes_.begin(), draw(nodes_.size()))->first; }

  void lose_some_node() {
    if (nodes_.empty())
      return;
    auto node = some_node();
    nodes_.erase(node);
    std::set<task_ref> expected;
    for (auto at = in_flight_.begin(); at != in_flight_.end();)
      if (at->node == node) {
        expected.insert({at->job, at->task});
        old_.push_back(*at);
        at = in_flight_.erase(at);
      } else {
        ++at;
      }
    auto loss = state_.on_node_lost(node, departure::died, now_);
    std::set<task_ref> told;
    for (auto* part : {&loss.requeued, &loss.failed, &loss.cancelled})
      for (auto& what : *part)
        CHECK(told.insert(what).second);
    CHECK(told == expected);
    for (auto& what : loss.failed)
      CHECK(state_.task(what.job, what.task)->attempt == retries + 1);
  }

  void cancel_some_job() {
    if (ids_.empty())
      return;
    auto id = *std::next(ids_.begin(), draw(ids_.size()));
    auto cancelled = state_.cancel(id, now_);
    std::set<assignment> expected;
    for (auto& what : in_flight_)
      if (what.job == id)
        expected.insert(what);
    if (cancelled)
      CHECK(std::set(cancelled->to_kill.begin(), cancelled->to_kill.end()) == expected);
    else
      CHECK(is_final(state_.job(id)->state));
  }

  void assign() {
    for (auto& what : state_.next_assignments(now_)) {
      CHECK(nodes_.contains(what.node));
      CHECK(what.slot < nodes_[what.node].slots);
      CHECK(what.attempt <= retries + 1);
      auto& attempt = attempts_[{what.job, what.task}];
      CHECK(what.attempt == attempt + 1);
      attempt = what.attempt;
      CHECK(in_flight_.insert(what).second);
    }
    // Nothing is left that could be started.
    CHECK(state_.next_assignments(now_).empty());
  }

  void finish_some_task() {
    if (in_flight_.empty())
      return;
    auto at = std::next(in_flight_.begin(), draw(in_flight_.size()));
    task_outcome outcome;
    outcome.exit_code = draw(4) == 0 ? static_cast<int32_t>(draw(200) + 1) : 0;
    auto verdict = state_.on_finished(*at, outcome, now_);
    CHECK(verdict.accepted);
    CHECK(verdict.job_ended == is_final(state_.job(at->job)->state));
    CHECK(accepted_.emplace(task_ref{at->job, at->task}, outcome.exit_code).second);
    old_.push_back(*at);
    in_flight_.erase(at);
  }

  void repeat_an_old_report() {
    if (old_.empty())
      return;
    task_outcome outcome;
    outcome.exit_code = 99;
    CHECK_FALSE(state_.on_finished(old_[draw(old_.size())], outcome, now_).accepted);
  }

  void check() {
    REQUIRE(book_.balanced());
    auto running = state_.running();
    CHECK(std::set(running.begin(), running.end()) == in_flight_);
    std::set<task_ref> tasks;
    std::set<std::pair<incarnation_id, uint32_t>> slots;
    std::map<incarnation_id, resource_amount> used;
    for (auto& what : running) {
      CHECK(tasks.insert({what.job, what.task}).second);
      CHECK(slots.emplace(what.node, what.slot).second);
      CHECK(nodes_.contains(what.node));
      used[what.node].cpus += state_.spec(what.job)->cpus;
      used[what.node].memory += state_.spec(what.job)->memory;
    }
    CHECK(book_.nodes().size() == nodes_.size());
    for (auto& [node, page] : book_.nodes())
      CHECK(page.granted == used[node]);
    auto totals = state_.totals();
    CHECK(totals.running == running.size());
    if (++checks_ % 8 == 0)
      check_tasks();
  }

  void check_tasks() {
    uint64_t submitted = 0;
    for (auto& job : state_.jobs()) {
      CHECK(job.tasks.total() == state_.spec(job.id)->task_count());
      submitted += job.tasks.total();
      // What has ended stays as it is.
      for (auto& task : state_.tasks(job.id, 0, 1000).value_or(std::vector<task_info>{})) {
        auto [at, added] = ended_.emplace(task_ref{job.id, task.task}, task.state);
        if (!added && is_final(at->second))
          CHECK(at->second == task.state);
        at->second = task.state;
      }
    }
    CHECK(state_.totals().total() == submitted);
  }

  std::mt19937 random_;
  unsigned checks_ = 0;
  wall_time now_{};
  resource_book book_;
  scheduler_state state_{book_, {retries, 1}};
  incarnation_id next_node_ = 1;
  std::map<incarnation_id, node_capacity> nodes_;
  std::set<job_id> ids_;
  std::set<assignment> in_flight_;
  std::vector<assignment> old_;
  std::map<task_ref, uint32_t> attempts_;
  std::map<task_ref, int32_t> accepted_;
  std::map<task_ref, run_state> ended_;
};

} // namespace

TEST_CASE("in any history every task ends once, runs on one live node, and the books balance") {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    history h{seed};
    for (int step = 0; step < 250; ++step)
      h.step();
    h.finish_all();
  }
}
