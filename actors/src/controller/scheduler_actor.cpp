#include "controller/scheduler_actor.hpp"

#include "controller/summaries.hpp"
#include "troupe/actors/task_slot.hpp"
#include "troupe/framework/errors.hpp"
#include "troupe/transport/log.hpp"

#include <algorithm>
#include <caf/send.hpp>
#include <utility>

namespace troupe::cluster {

namespace {

constexpr uint64_t most_output_bytes = 4 * 1024 * 1024; // of one answer
constexpr size_t most_shown_tasks = 10'000;

wall_time now() {
  return std::chrono::system_clock::now();
}

std::string describe_task(const assignment& what) {
  return "task " + std::to_string(what.task) + " of job " + std::to_string(what.job);
}

} // namespace

scheduler::scheduler(caf::event_based_actor* self, output_store store, uint32_t retries)
    : self_(self), store_(std::move(store)), state_(book_, {.retries = retries}) {}

caf::behavior scheduler::make_behavior() {
  return {
      [this](submit_request& request) { return submit(request); },
      [this](list_jobs_request) {
        std::vector<job_summary> out;
        for (auto& info : state_.jobs())
          out.push_back(summarize(info, now()));
        return out;
      },
      [this](const job_request& request) { return describe(request); },
      [this](const wait_request& request) { return wait_for(request); },
      [this](const output_request& request) { return read_output(request); },
      [this](const cancel_request& request) { return cancel(request); },
      [this](const command_request& request) { return command(request.words); },
      [this](const worker_added& what) { add(what); },
      [this](const worker_removed& what) { remove(what); },
      [this](const worker_accepting& what) {
        state_.set_accepting(what.node, what.accepting);
        assign_what_can();
      },
      [this](const slot_finished& report) { on_finished(report); },
      [this](output_part& part) { on_part(part); },
      [this](books_request) { return report_books(); },
  };
}

// -- requests of the command line
// ------------------------------------------------------------------------

caf::result<submitted> scheduler::submit(submit_request& request) {
  auto spec = to_spec(std::move(request));
  if (!spec)
    return to_caf(spec.error());
  auto id = state_.submit(std::move(*spec), now());
  if (!id)
    return to_caf(id.error());
  assign_what_can();
  return submitted{*id};
}

caf::result<job_details> scheduler::describe(const job_request& request) {
  auto info = state_.job(request.job);
  if (!info)
    return to_caf(info.error());
  job_details out;
  out.summary = summarize(*info, now());
  auto spec = state_.spec(request.job);
  out.request = to_request(*spec);
  auto tasks = state_.tasks(request.job, spec->tasks().first, most_shown_tasks);
  if (!tasks)
    return to_caf(tasks.error());
  for (auto& task : *tasks)
    if (task.attempt > 0)
      out.tasks.push_back(summarize(task, now()));
  return out;
}

caf::result<job_summary> scheduler::wait_for(const wait_request& request) {
  auto info = state_.job(request.job);
  if (!info)
    return to_caf(info.error());
  if (is_final(info->state))
    return summarize(*info, now());
  auto promise = self_->make_response_promise<job_summary>();
  waiting_.emplace(request.job, promise);
  return promise;
}

void scheduler::tell_waiting(job_id job) {
  auto [first, last] = waiting_.equal_range(job);
  if (first == last)
    return;
  if (auto info = state_.job(job))
    for (auto it = first; it != last; ++it)
      it->second.deliver(summarize(*info, now()));
  waiting_.erase(first, last);
}

caf::result<output_chunk> scheduler::read_output(const output_request& request) {
  auto index = static_cast<uint32_t>(std::min<uint64_t>(request.task, UINT32_MAX));
  auto task = state_.task(request.job, index);
  if (!task)
    return to_caf(task.error());
  output_chunk out;
  out.ended = is_final(task->state);
  auto found = outputs_.find({request.job, index});
  if (found == outputs_.end())
    return out;
  auto& extent =
      request.standard_error ? found->second.standard_error : found->second.standard_output;
  auto bytes = store_.read(extent, request.offset, std::min(request.most, most_output_bytes));
  if (!bytes)
    return to_caf(bytes.error());
  out.bytes = std::move(*bytes);
  out.total = extent.length;
  return out;
}

caf::result<job_summary> scheduler::cancel(const cancel_request& request) {
  auto what = state_.cancel(request.job, now());
  if (!what)
    return to_caf(what.error());
  std::map<incarnation_id, kill_tasks> orders;
  for (auto& running : what->to_kill)
    orders[running.node].tasks.push_back(
        {running.slot, running.attempt, running.job, running.task});
  for (auto& [node, order] : orders)
    if (auto found = workers_.find(node); found != workers_.end())
      self_->send(found->second.handle, std::move(order));
  tell_waiting(what->job_ended ? request.job : 0);
  assign_what_can();
  auto info = state_.job(request.job);
  if (!info)
    return to_caf(info.error());
  return summarize(*info, now());
}

caf::result<std::string> scheduler::command(const std::vector<std::string>& words) {
  if (words.size() == 1 && words[0] == "status") {
    auto totals = state_.totals();
    return std::to_string(workers_.size()) + " workers; tasks: " + std::to_string(totals.queued) +
           " queued, " + std::to_string(totals.running) + " running, " +
           std::to_string(totals.succeeded) + " succeeded, " + std::to_string(totals.failed) +
           " failed, " + std::to_string(totals.cancelled) + " cancelled";
  }
  return to_caf({errc::invalid_argument, "the scheduler accepts: status"});
}

// -- workers
// ------------------------------------------------------------------------------------------------

void scheduler::add(const worker_added& what) {
  if (auto joined = state_.on_node_joined(what.node, what.id, what.capacity); !joined) {
    log_for("scheduler")->error("worker {}: {}", what.id, joined.error().text());
    return;
  }
  workers_.emplace(what.node, worker{what.id, what.port, what.handle, {}});
  assign_what_can();
}

void scheduler::remove(const worker_removed& what) {
  auto found = workers_.find(what.node);
  if (found == workers_.end())
    return;
  auto loss = state_.on_node_lost(what.node, what.how, now());
  auto left = what.how == departure::left;
  log_for("scheduler")
      ->log(left ? spdlog::level::info : spdlog::level::warn,
            "worker {} {}: {} tasks start again, {} failed", found->second.id,
            left ? "left" : "is dead (" + what.reason + ")", loss.requeued.size(),
            loss.failed.size());
  std::erase_if(transfers_, [&](auto& entry) { return entry.second.what.node == what.node; });
  found->second.port->close();
  workers_.erase(found);
  for (auto job : loss.ended)
    tell_waiting(job);
  assign_what_can();
}

books scheduler::report_books() const {
  books out;
  for (auto& [node, account] : book_.nodes()) {
    auto found = workers_.find(node);
    auto running = found == workers_.end() ? 0 : found->second.running.size();
    out.nodes.emplace(node, node_books{account, static_cast<uint32_t>(running)});
  }
  return out;
}

// -- tasks
// --------------------------------------------------------------------------------------------------

void scheduler::assign_what_can() {
  for (auto& what : state_.next_assignments(now()))
    dispatch(what);
}

void scheduler::dispatch(const assignment& what) {
  auto found = workers_.find(what.node);
  auto spec = state_.spec(what.job);
  if (found == workers_.end() || !spec)
    return;
  auto& to = found->second;
  to.running[what.slot] = what;
  task_order order;
  order.job = what.job;
  order.task = what.task;
  order.attempt = what.attempt;
  order.cpus = spec->cpus;
  order.memory = spec->memory;
  order.argv = spec->argv;
  order.env = spec->env;
  order.cwd = spec->cwd;
  auto body = encode_task_body(order);
  transport::remote_region where;
  if (body.size() > max_inline_task_body) {
    // Too long for a slot: the slot says where the worker can read it.
    auto exposed = to.port->expose(what.slot, body);
    if (!exposed)
      return fail_to_start(what, exposed.error());
    where = {exposed->address, exposed->length, exposed->key};
  }
  std::vector<std::byte> record(task_slot_bytes);
  if (auto used = encode_task_slot(order, body, where, record); !used)
    return fail_to_start(what, used.error());
  to.port->assign(what.slot, std::move(record));
}

void scheduler::fail_to_start(const assignment& what, const error& why) {
  task_outcome outcome;
  outcome.failure = "the task could not be passed to its worker: " + why.text();
  conclude(what, outcome, {});
}

void scheduler::on_finished(const slot_finished& report) {
  auto found = workers_.find(report.node);
  if (found == workers_.end())
    return; // declared dead meanwhile: its tasks run elsewhere
  auto& from = found->second;
  auto running = from.running.find(report.slot);
  auto end = decode_completion_slot(report.record);
  if (!end || running == from.running.end() || end->job != running->second.job ||
      end->task != running->second.task || end->attempt != running->second.attempt) {
    log_for("scheduler")
        ->warn("worker {} reports an end in slot {} that fits no task: {}", from.id, report.slot,
               end ? "another task runs there" : end.error().text());
    return;
  }
  auto what = running->second;
  if (auto remote = std::get_if<remote_output>(&end->output))
    return begin_transfer(what, end->outcome(), *remote);
  auto& inlined = std::get<inline_output>(end->output);
  task_output output{store_.reserve(inlined.standard_output.size()),
                     store_.reserve(inlined.standard_error.size())};
  auto kept = store_.write(output.standard_output, 0, inlined.standard_output);
  if (kept)
    kept = store_.write(output.standard_error, 0, inlined.standard_error);
  auto outcome = end->outcome();
  if (!kept)
    outcome.failure = kept.error().text();
  conclude(what, outcome, output);
}

void scheduler::begin_transfer(const assignment& what, const task_outcome& outcome,
                               const remote_output& from) {
  transfer made;
  made.what = what;
  made.outcome = outcome;
  made.source[0] = from.standard_output;
  made.source[1] = from.standard_error;
  for (int i = 0; i < 2; ++i)
    made.kept[i] = store_.reserve(made.source[i].length);
  auto id = ++last_transfer_;
  transfers_.emplace(id, made);
  continue_transfer(id);
}

void scheduler::continue_transfer(uint64_t id) {
  auto& moving = transfers_.at(id);
  auto found = workers_.find(moving.what.node);
  if (found == workers_.end())
    return;
  for (int i = 0; i < 2; ++i) {
    auto left = moving.source[i].length - moving.done[i];
    if (left == 0)
      continue;
    found->second.port->read(
        {moving.source[i].address, moving.source[i].length, moving.source[i].key}, moving.done[i],
        std::min(left, worker_port::most_read),
        [self = caf::actor_cast<caf::actor>(self_), id, i](result<std::vector<std::byte>> bytes) {
          caf::anon_send(self, output_part{id, i == 1, std::move(bytes)});
        });
    return;
  }
  auto ended = std::move(moving);
  transfers_.erase(id);
  conclude(ended.what, ended.outcome, {ended.kept[0], ended.kept[1]});
}

void scheduler::on_part(output_part& part) {
  auto found = transfers_.find(part.transfer);
  if (found == transfers_.end())
    return; // its worker is gone: the task runs again elsewhere
  auto& moving = found->second;
  if (!part.bytes) {
    // The connection is about to be reported as lost, which starts the task again; anything else is
    // final.
    log_for("scheduler")
        ->warn("reading the output of {}: {}", describe_task(moving.what),
               part.bytes.error().text());
    if (part.bytes.error().code() == errc::remote_access) {
      moving.outcome.failure = "its output could not be read: " + part.bytes.error().text();
      auto ended = std::move(moving);
      transfers_.erase(found);
      conclude(ended.what, ended.outcome, {});
    }
    return;
  }
  auto which = part.standard_error ? 1 : 0;
  if (auto kept = store_.write(moving.kept[which], moving.done[which], *part.bytes); !kept)
    moving.outcome.failure = kept.error().text();
  moving.done[which] += part.bytes->size();
  continue_transfer(part.transfer);
}

/// Records the end of a task, frees its slot and uses it.
void scheduler::conclude(const assignment& what, const task_outcome& outcome,
                         const task_output& output) {
  if (auto found = workers_.find(what.node); found != workers_.end()) {
    auto& from = found->second;
    from.running.erase(what.slot);
    from.port->release(what.slot);
    self_->send(from.handle, output_taken{{what.slot, what.attempt, what.job, what.task}});
  }
  auto verdict = state_.on_finished(what, outcome, now());
  if (!verdict.accepted) {
    log_for("scheduler")
        ->warn("the end of {} does not count: {}", describe_task(what), verdict.why_not);
    return;
  }
  outputs_[{what.job, what.task}] = output;
  if (verdict.job_ended)
    tell_waiting(what.job);
  assign_what_can();
}

} // namespace troupe::cluster
