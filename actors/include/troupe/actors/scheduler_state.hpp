// The scheduler's decisions: which task runs where, and what became of it.
//
// Order. Jobs are served in the order of submission, the tasks of a job in the order of their
// indices, as many at once as free CPUs, memory and slots allow. When the first job that could run
// somewhere does not fit now, one node is kept free for it until it does, and later jobs may use
// all others: nobody waits for ever, and little stands idle. A job that no present node could ever
// run holds up nobody. A task that comes back from a lost worker takes its old place.
#pragma once

#include "troupe/actors/job.hpp"
#include "troupe/actors/resource_book.hpp"
#include "troupe/framework/node_info.hpp"
#include "troupe/transport/error.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace troupe::cluster {

/// Names one task of one job.
struct task_ref {
  job_id job = 0;
  uint32_t task = 0;

  auto operator<=>(const task_ref&) const = default;
};

/// One attempt of a task in a slot of a worker.
struct assignment {
  job_id job = 0;
  uint32_t task = 0;
  uint32_t attempt = 0; ///< from 1
  incarnation_id node = 0;
  uint32_t slot = 0; ///< below the node's `node_capacity::slots`

  auto operator<=>(const assignment&) const = default;
};

/// What became of a report that a task ended.
struct finish_verdict {
  bool accepted = false;
  std::string why_not; ///< when not accepted: for logs
  bool job_ended = false;
};

/// How a worker went. Starting its tasks again takes one of their retries only if it died.
enum class departure : uint8_t { died, left };

/// What the loss of a worker did to the tasks that ran there, in their order.
struct node_loss {
  std::vector<task_ref> requeued;
  std::vector<task_ref> failed;    ///< no retries left
  std::vector<task_ref> cancelled; ///< their job was being cancelled
  std::vector<job_id> ended;       ///< jobs that this ended
};

/// What is left to do for a cancelled job.
struct cancellation {
  std::vector<assignment> to_kill; ///< their ends must still be reported
  bool job_ended = false;          ///< nothing ran
};

class job_entry;

/// Jobs, their tasks, and the workers that they run on. One thread; holds no clock. Times are only
/// recorded for display.
class scheduler_state {
public:
  struct options {
    uint32_t retries = 2; ///< how often a task whose worker was lost is started again
    job_id first_job = 1; ///< the first id that is given out
  };

  /// `book` must outlive this. Others may grant from it too.
  scheduler_state(resource_book& book, options chosen);
  ~scheduler_state();
  scheduler_state(const scheduler_state&) = delete;
  scheduler_state& operator=(const scheduler_state&) = delete;

  // -- workers

  /// Adds a worker, here and in the book.
  /// @returns `errc::already_exists` for a known incarnation, `errc::invalid_argument` for 0
  /// and for a worker without CPUs or slots.
  status on_node_joined(incarnation_id node, std::string name, node_capacity capacity);

  /// Whether the worker gets new tasks; not while it is suspect or drained. Unknown ones are
  /// ignored.
  void set_accepting(incarnation_id node, bool accepting);

  /// Removes a worker that died or left, here and from the book. Unknown ones have no effect.
  node_loss on_node_lost(incarnation_id node, departure how, wall_time now);

  // -- jobs

  /// Queues a job.
  /// @returns its id, or what `check(job_spec)` found.
  result<job_id> submit(job_spec spec, wall_time now);

  /// Starts whatever can be started now: takes slots and resources for it. To be called after
  /// anything else here, or a release in the book, has changed something.
  std::vector<assignment> next_assignments(wall_time now);

  /// A worker reports the end of a task. Accepted once, and only from the slot, incarnation and
  /// attempt that it was given to. The slot may be given away again at once: call this when the
  /// task's output is safe.
  finish_verdict on_finished(const assignment& what, const task_outcome& outcome, wall_time now);

  /// Cancels a job: its queued tasks end now; those that run are to be killed, and end when their
  /// worker reports it or is lost. Cancelling again lists what still runs.
  /// @returns `errc::not_found`, or `errc::invalid_argument` when it has already ended.
  result<cancellation> cancel(job_id job, wall_time now);

  // -- views

  /// What was submitted; null when there is no such job. Valid as long as this.
  const job_spec* spec(job_id job) const;

  /// @returns `errc::not_found` when there is no such job.
  result<job_info> job(job_id job) const;

  /// All jobs, by id.
  std::vector<job_info> jobs() const;

  /// One task. @returns `errc::not_found` when there is no such job or task.
  result<task_info> task(job_id job, uint32_t task) const;

  /// Up to `count` tasks from index `from` on. @returns `errc::not_found` when there is no such
  /// job.
  result<std::vector<task_info>> tasks(job_id job, uint32_t from, size_t count) const;

  /// Tasks that hold a slot, by node and slot.
  std::vector<assignment> running() const;

  /// Tasks of all jobs.
  task_counters totals() const;

private:
  struct running_task {
    task_ref what;
    uint32_t attempt = 0;
    grant_id grant = 0;
  };

  struct worker {
    std::string name;
    node_capacity capacity;
    bool accepting = true;
    std::map<uint32_t, running_task> busy; ///< by slot
    std::set<uint32_t> idle;               ///< slots
  };

  struct reservation {
    job_id job = 0;
    incarnation_id node = 0;
  };

  job_entry* find(job_id job) const;
  bool kept_from(job_id job, incarnation_id node) const;
  bool any_open_node(job_id job) const;
  bool could_run(const worker& where, const job_spec& spec) const;
  std::optional<incarnation_id> pick_node(const job_entry& job) const;
  assignment start(job_entry& job, incarnation_id node, wall_time now);
  void reserve_for(const job_entry& job);
  bool park_if_impossible(const job_entry& job);
  void forget_queued(job_id job);
  void requeue_parked();
  std::string waiting_reason(const job_entry& job) const;
  job_info describe(const job_entry& job) const;
  task_info describe(const job_entry& job, uint32_t task) const;

  resource_book& book_;
  options options_;
  job_id next_job_;
  std::map<job_id, std::unique_ptr<job_entry>> jobs_;
  std::map<incarnation_id, worker> workers_;
  std::map<incarnation_id, std::string> names_; ///< of every worker there ever was, for records
  std::set<job_id> queue_;                      ///< jobs with queued tasks
  std::set<job_id> parked_;                     ///< likewise, but no present node could run them
  std::optional<reservation> reserved_;
};

} // namespace troupe::cluster
