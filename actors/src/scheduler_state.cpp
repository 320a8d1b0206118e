#include "troupe/actors/scheduler_state.hpp"

#include "job_entry.hpp"
#include "troupe/framework/units.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace troupe::cluster {

namespace {

resource_amount needs(const job_spec& spec) {
  return {spec.cpus, spec.memory};
}

std::string no_job(job_id job) {
  return "there is no job " + std::to_string(job);
}

std::string spell_cpus(uint32_t count) {
  return std::to_string(count) + (count == 1 ? " CPU" : " CPUs");
}

} // namespace

scheduler_state::scheduler_state(resource_book& book, options chosen)
    : book_(book), options_(chosen), next_job_(chosen.first_job) {}

scheduler_state::~scheduler_state() = default;

// -- workers

status scheduler_state::on_node_joined(incarnation_id node, std::string name,
                                       node_capacity capacity) {
  if (node == 0 || capacity.cpus == 0 || capacity.slots == 0)
    return fail(errc::invalid_argument,
                "node '" + name + "' has no incarnation, CPUs or slots, so it can run nothing");
  if (auto added = book_.add_node(node, {capacity.cpus, capacity.memory}); !added)
    return added;
  worker added{name, capacity, true, {}, {}};
  for (uint32_t slot = 0; slot < capacity.slots; ++slot)
    added.idle.insert(added.idle.end(), slot);
  workers_.emplace(node, std::move(added));
  names_.emplace(node, std::move(name));
  requeue_parked();
  return {};
}

void scheduler_state::set_accepting(incarnation_id node, bool accepting) {
  auto found = workers_.find(node);
  if (found == workers_.end())
    return;
  found->second.accepting = accepting;
  if (accepting)
    requeue_parked();
}

node_loss scheduler_state::on_node_lost(incarnation_id node, departure how, wall_time now) {
  node_loss loss;
  auto found = workers_.find(node);
  if (found == workers_.end())
    return loss;
  std::vector<task_ref> tasks;
  for (auto& [_, task] : found->second.busy)
    tasks.push_back(task.what);
  auto failure = "worker lost: node '" + found->second.name + "' was gone before the task ended";
  workers_.erase(found);
  book_.remove_node(node);
  std::sort(tasks.begin(), tasks.end());
  for (auto& what : tasks) {
    auto& job = *find(what.job);
    switch (how == departure::left ? job.give_back(what.task, now)
                                   : job.lose(what.task, options_.retries, failure, now)) {
    case run_state::queued:
      queue_.insert(what.job);
      loss.requeued.push_back(what);
      break;
    case run_state::cancelled:
      loss.cancelled.push_back(what);
      break;
    default:
      loss.failed.push_back(what);
    }
    // No task of a job that has ended follows.
    if (job.ended())
      loss.ended.push_back(what.job);
  }
  return loss;
}

// -- jobs

result<job_id> scheduler_state::submit(job_spec spec, wall_time now) {
  if (auto valid = check(spec); !valid)
    return fail(valid.error());
  auto id = next_job_++;
  jobs_.emplace(id, std::make_unique<job_entry>(id, std::move(spec), now));
  queue_.insert(id);
  return id;
}

std::vector<assignment> scheduler_state::next_assignments(wall_time now) {
  std::vector<assignment> out;
  bool someone_waits = false;
  // What did not fit once in this pass does not fit a second time.
  std::set<std::pair<uint32_t, uint64_t>> too_large;
  for (auto at = queue_.begin(); at != queue_.end() && any_open_node(*at);) {
    auto& job = *find(*at++);
    std::pair shape{job.spec().cpus, job.spec().memory};
    if (!too_large.contains(shape))
      while (job.has_queued()) {
        auto node = pick_node(job);
        if (!node)
          break;
        out.push_back(start(job, *node, now));
      }
    if (!job.has_queued()) {
      forget_queued(job.id());
      continue;
    }
    too_large.insert(shape);
    if (park_if_impossible(job))
      continue;
    if (!std::exchange(someone_waits, true))
      reserve_for(job);
  }
  return out;
}

finish_verdict scheduler_state::on_finished(const assignment& what, const task_outcome& outcome,
                                            wall_time now) {
  auto stale = [&](const std::string& why) {
    return finish_verdict{false,
                          "task " + std::to_string(what.task) + " of job " +
                              std::to_string(what.job) + ", attempt " +
                              std::to_string(what.attempt) + ": " + why,
                          false};
  };
  auto found = workers_.find(what.node);
  if (found == workers_.end())
    return stale("incarnation " + format_incarnation(what.node) + " is no worker");
  auto& where = found->second;
  auto busy = where.busy.find(what.slot);
  if (busy == where.busy.end())
    return stale("slot " + std::to_string(what.slot) + " of node '" + where.name + "' is idle");
  auto& task = busy->second;
  if (task.what != task_ref{what.job, what.task} || task.attempt != what.attempt)
    return stale("slot " + std::to_string(what.slot) + " of node '" + where.name + "' holds task " +
                 std::to_string(task.what.task) + " of job " + std::to_string(task.what.job) +
                 ", attempt " + std::to_string(task.attempt));
  book_.release(task.grant);
  where.busy.erase(busy);
  where.idle.insert(what.slot);
  auto& job = *find(what.job);
  job.finish(what.task, outcome, now);
  return {true, {}, job.ended()};
}

result<cancellation> scheduler_state::cancel(job_id id, wall_time now) {
  auto* job = find(id);
  if (!job)
    return fail(errc::not_found, no_job(id));
  if (job->ended())
    return fail(errc::invalid_argument, "job " + std::to_string(id) + " has already ended (" +
                                            std::string{to_string(job->state())} + ')');
  job->cancel(now);
  forget_queued(id);
  cancellation out;
  out.job_ended = job->ended();
  for (auto& held : running())
    if (held.job == id)
      out.to_kill.push_back(held);
  return out;
}

// -- views

const job_spec* scheduler_state::spec(job_id id) const {
  auto* job = find(id);
  return job ? &job->spec() : nullptr;
}

result<job_info> scheduler_state::job(job_id id) const {
  auto* job = find(id);
  if (!job)
    return fail(errc::not_found, no_job(id));
  return describe(*job);
}

std::vector<job_info> scheduler_state::jobs() const {
  std::vector<job_info> out;
  out.reserve(jobs_.size());
  for (auto& [_, job] : jobs_)
    out.push_back(describe(*job));
  return out;
}

result<task_info> scheduler_state::task(job_id id, uint32_t task) const {
  auto* job = find(id);
  if (!job)
    return fail(errc::not_found, no_job(id));
  if (!job->contains(task)) {
    auto range = job->spec().tasks();
    return fail(errc::not_found, "job " + std::to_string(id) + " has no task " +
                                     std::to_string(task) + "; its tasks are " +
                                     std::to_string(range.first) + " to " +
                                     std::to_string(range.last));
  }
  return describe(*job, task);
}

result<std::vector<task_info>> scheduler_state::tasks(job_id id, uint32_t from,
                                                      size_t count) const {
  auto* job = find(id);
  if (!job)
    return fail(errc::not_found, no_job(id));
  std::vector<task_info> out;
  auto range = job->spec().tasks();
  // In 64 bits: the last index may be the largest of 32.
  for (uint64_t task = std::max(from, range.first); task <= range.last && out.size() < count;
       ++task)
    out.push_back(describe(*job, static_cast<uint32_t>(task)));
  return out;
}

std::vector<assignment> scheduler_state::running() const {
  std::vector<assignment> out;
  for (auto& [node, where] : workers_)
    for (auto& [slot, task] : where.busy)
      out.push_back({task.what.job, task.what.task, task.attempt, node, slot});
  return out;
}

task_counters scheduler_state::totals() const {
  task_counters sum;
  for (auto& [_, job] : jobs_) {
    auto& counters = job->counters();
    sum.queued += counters.queued;
    sum.running += counters.running;
    sum.succeeded += counters.succeeded;
    sum.failed += counters.failed;
    sum.cancelled += counters.cancelled;
  }
  return sum;
}

// -- placement

job_entry* scheduler_state::find(job_id id) const {
  auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : found->second.get();
}

// Whether `node` is kept free for a job before `job`.
bool scheduler_state::kept_from(job_id job, incarnation_id node) const {
  return reserved_ && reserved_->node == node && reserved_->job < job;
}

// Whether any task at all could be started for `job` or a later one.
bool scheduler_state::any_open_node(job_id job) const {
  return std::any_of(workers_.begin(), workers_.end(), [&](auto& entry) {
    auto& [node, where] = entry;
    return where.accepting && !where.idle.empty() && book_.find(node)->free.cpus != 0 &&
           !kept_from(job, node);
  });
}

// Whether `where` could run a task if it had nothing else to do.
bool scheduler_state::could_run(const worker& where, const job_spec& spec) const {
  return where.accepting &&
         resource_amount{where.capacity.cpus, where.capacity.memory}.covers(needs(spec));
}

// The node with the most free CPUs, then memory, of those that can start a task of `job` now.
std::optional<incarnation_id> scheduler_state::pick_node(const job_entry& job) const {
  std::optional<incarnation_id> best;
  resource_amount most;
  for (auto& [node, where] : workers_) {
    auto& free = book_.find(node)->free;
    if (!where.accepting || where.idle.empty() || !free.covers(needs(job.spec())) ||
        kept_from(job.id(), node))
      continue;
    if (!best || std::tie(free.cpus, free.memory) > std::tie(most.cpus, most.memory)) {
      best = node;
      most = free;
    }
  }
  return best;
}

assignment scheduler_state::start(job_entry& job, incarnation_id node, wall_time now) {
  auto& where = workers_.at(node);
  auto slot = *where.idle.begin();
  where.idle.erase(where.idle.begin());
  // `pick_node` has seen that this much is free.
  auto grant = *book_.grant(node, needs(job.spec()));
  auto [task, attempt] = job.start_next(node, now);
  where.busy.emplace(slot, running_task{{job.id(), task}, attempt, grant});
  return {job.id(), task, attempt, node, slot};
}

// Keeps a node free for the first job that has to wait; the same one as long as it is of use.
void scheduler_state::reserve_for(const job_entry& job) {
  if (reserved_ && reserved_->job == job.id()) {
    auto kept = workers_.find(reserved_->node);
    if (kept != workers_.end() && could_run(kept->second, job.spec()))
      return;
  }
  reserved_.reset();
  uint32_t most = 0;
  for (auto& [node, where] : workers_) {
    auto free = book_.find(node)->free.cpus;
    if (could_run(where, job.spec()) && (!reserved_ || free > most)) {
      reserved_ = reservation{job.id(), node};
      most = free;
    }
  }
}

bool scheduler_state::park_if_impossible(const job_entry& job) {
  if (std::any_of(workers_.begin(), workers_.end(),
                  [&](auto& entry) { return could_run(entry.second, job.spec()); }))
    return false;
  forget_queued(job.id());
  parked_.insert(job.id());
  return true;
}

// `job` has no queued tasks any more, or none that can be started.
void scheduler_state::forget_queued(job_id job) {
  queue_.erase(job);
  parked_.erase(job);
  if (reserved_ && reserved_->job == job)
    reserved_.reset();
}

// The workers have changed: what no node could run may be possible now.
void scheduler_state::requeue_parked() {
  queue_.merge(parked_);
}

// -- description

std::string scheduler_state::waiting_reason(const job_entry& job) const {
  if (!job.has_queued())
    return {};
  auto& spec = job.spec();
  if (workers_.empty())
    return "there is no worker in the cluster";
  resource_amount largest;
  bool possible = false;
  for (auto& [_, where] : workers_) {
    if (!where.accepting)
      continue;
    largest.cpus = std::max(largest.cpus, where.capacity.cpus);
    largest.memory = std::max(largest.memory, where.capacity.memory);
    possible = possible || could_run(where, spec);
  }
  if (largest.cpus == 0)
    return "no worker takes new tasks at the moment";
  auto memory = format_size(spec.memory);
  if (largest.cpus < spec.cpus)
    return "needs " + spell_cpus(spec.cpus) + "; the largest node has " +
           std::to_string(largest.cpus);
  if (largest.memory < spec.memory)
    return "needs " + memory + " of memory; the largest node has " + format_size(largest.memory);
  auto both = spell_cpus(spec.cpus) + (spec.memory == 0 ? "" : " and " + memory + " of memory");
  if (!possible)
    return "needs " + both + " on one node; no node has both";
  return "waits until a node has " + both + " free";
}

job_info scheduler_state::describe(const job_entry& job) const {
  auto info = job.info();
  info.waiting = waiting_reason(job);
  return info;
}

task_info scheduler_state::describe(const job_entry& job, uint32_t task) const {
  auto info = job.info(task);
  if (auto name = names_.find(info.incarnation); name != names_.end())
    info.node = name->second;
  return info;
}

} // namespace troupe::cluster
