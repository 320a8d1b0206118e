// Every message that crosses a node's border between actors of the cluster, and the ids they travel
// under. Plain data: checked by whoever receives it.
//
// The controller's actor is published at its node's `listen` endpoint and answers the requests
// below; an error comes back as a `caf::error` that `to_troupe` turns into a `troupe::error` (see
// errors.hpp).
#pragma once

#include "troupe/framework/node_info.hpp"

#include <caf/actor_system_config.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace troupe::cluster {

// -- jobs: the command line to the controller
// -------------------------------------------------------------

/// Asks for a job of `last - first + 1` tasks, or of one task without an index. Answer:
/// `submitted`.
struct submit_request {
  std::string name;
  std::string user;
  std::vector<std::string> argv;
  std::vector<std::string>
      env; ///< NAME=value, the task's whole environment; the worker adds TROUPE_*
  std::string cwd;
  uint32_t cpus = 1;
  uint64_t memory = 0; ///< bytes; 0: not limited and not accounted
  bool is_array = false;
  uint64_t first = 0;
  uint64_t last = 0;

  bool operator==(const submit_request&) const = default;
};

struct submitted {
  uint64_t job = 0;
  bool operator==(const submitted&) const = default;
};

/// A job in one line.
struct job_summary {
  uint64_t id = 0;
  std::string name;
  std::string user;
  std::string state; ///< queued, running, succeeded, failed or cancelled
  uint64_t tasks = 0;
  uint64_t queued = 0;
  uint64_t running = 0;
  uint64_t succeeded = 0;
  uint64_t failed = 0; ///< includes those whose workers were lost too often
  uint64_t cancelled = 0;
  uint64_t restarts = 0;   ///< tasks that started again because their worker was lost
  int32_t exit_status = 0; ///< of the job, once it has ended: see `wait_request`
  std::string waiting;     ///< why nothing of it runs; empty when something does or it has ended
  uint64_t age_ms = 0;     ///< since submission
  uint64_t run_ms = 0; ///< from its first task's start to its end, or until now; 0 before the first

  bool operator==(const job_summary&) const = default;
};

/// One task of a job that has started at least once.
struct task_summary {
  uint64_t index = 0;
  std::string state;      ///< queued (again), running, succeeded, failed or cancelled
  std::string node;       ///< where it runs or ran last
  uint32_t attempt = 0;   ///< 1 for the first
  int32_t exit_code = -1; ///< -1 when it did not exit by itself
  int32_t signal = 0;     ///< that killed it, or 0
  std::string reason;     ///< of a failure that is neither an exit code nor a signal
  uint64_t run_ms = 0;
  uint64_t stdout_bytes = 0;
  uint64_t stderr_bytes = 0;

  bool operator==(const task_summary&) const = default;
};

/// Answer: `std::vector<job_summary>`, oldest first.
struct list_jobs_request {
  bool operator==(const list_jobs_request&) const = default;
};

/// Answer: `job_details`, or `errc::not_found`.
struct job_request {
  uint64_t job = 0;
  bool operator==(const job_request&) const = default;
};

struct job_details {
  job_summary summary;
  submit_request request;
  std::vector<task_summary> tasks; ///< at most 10,000; those that have started, by index

  bool operator==(const job_details&) const = default;
};

/// Answer: `job_summary`, when the job has ended (which may take any time), or `errc::not_found`.
/// Its `exit_status` is 0 when all tasks succeeded, else that of the first failed task: its exit
/// code, 128 + signal, or 125 when it could not be run; 130 for a cancelled job.
struct wait_request {
  uint64_t job = 0;
  bool operator==(const wait_request&) const = default;
};

/// A part of what a task wrote. Answer: `output_chunk`; `errc::not_found` for an unknown job or
/// task.
struct output_request {
  uint64_t job = 0;
  uint64_t task = 0; ///< the index in an array; 0 for a job without
  bool standard_error = false;
  uint64_t offset = 0;
  uint64_t most = 0; ///< bytes wanted

  bool operator==(const output_request&) const = default;
};

struct output_chunk {
  std::vector<char> bytes;
  uint64_t total = 0; ///< bytes of the whole output
  bool ended = false; ///< the task has ended; before that there is no output yet

  bool operator==(const output_chunk&) const = default;
};

/// Answer: `job_summary` after cancelling; `errc::not_found`, or `errc::invalid_argument` when it
/// has ended.
struct cancel_request {
  uint64_t job = 0;
  bool operator==(const cancel_request&) const = default;
};

// -- nodes and actors: the command line to the controller
// -----------------------------------------------------

struct node_summary {
  std::string id;
  uint64_t incarnation = 0;
  std::vector<std::string> roles;
  std::string state; ///< alive, suspect, dead or left
  std::string address;
  std::string path; ///< that its memory link takes: "shared memory", "tcp", an adapter's name
  uint32_t cpus = 0;
  uint32_t cpus_granted = 0;
  uint64_t memory = 0;
  uint64_t memory_granted = 0;
  uint32_t running = 0;  ///< tasks, by the controller's books
  uint64_t finished = 0; ///< tasks, by its state page
  uint64_t epoch = 0;    ///< of its loop, by its state page
  uint32_t cpu_busy_permille = 0;
  uint64_t memory_available = 0; ///< bytes
  uint64_t heard_ms_ago = 0;     ///< since the monitor last saw its epoch advance

  bool operator==(const node_summary&) const = default;
};

/// Answer: `std::vector<node_summary>`, by id.
struct list_nodes_request {
  bool operator==(const list_nodes_request&) const = default;
};

/// Answer: `cluster_info`.
struct info_request {
  bool operator==(const info_request&) const = default;
};

struct cluster_info {
  std::string version;
  std::string controller; ///< node id
  std::string device;
  std::string device_reason;
  uint64_t uptime_ms = 0;

  bool operator==(const cluster_info&) const = default;
};

/// A command for a named actor: its words. Answer: `std::string`, what to print; `errc::not_found`
/// (with the nearest names) when there is no such actor, `errc::invalid_argument` (with what it
/// accepts) for a command that it does not know.
struct command_request {
  std::string actor;
  std::vector<std::string> words;

  bool operator==(const command_request&) const = default;
};

/// Answer: `std::vector<std::string>`, the names of the actors that take commands.
struct list_actors_request {
  bool operator==(const list_actors_request&) const = default;
};

/// Ends the cluster: workers kill their tasks and end, then the controller does. Answer: nothing,
/// before it ends.
struct shutdown_request {
  bool operator==(const shutdown_request&) const = default;
};

// -- workers and the controller
// --------------------------------------------------------------------------------

/// Memory that the sender of the message exposes. See `transport::remote_region`.
struct exposed_region {
  uint64_t address = 0;
  uint64_t length = 0;
  uint32_t key = 0;

  bool operator==(const exposed_region&) const = default;
};

/// A worker asks to join. Answer: `join_accepted`; `errc::already_exists` when another node has
/// that id and has given signs of life since. Until that is known, or the other is dead, there is
/// no answer.
struct join_request {
  std::string id;
  incarnation_id incarnation = 0;
  std::vector<std::string> roles;
  std::string address; ///< where it listens
  uint32_t cpus = 0;
  uint64_t memory = 0;
  uint32_t slots = 0;
  exposed_region inbox; ///< `slots` task slots, remote write and read
  exposed_region state; ///< the state page, remote read
  exposed_region lease; ///< 8 bytes, remote write: see task_lease.hpp

  bool operator==(const join_request&) const = default;
};

struct join_accepted {
  uint64_t token = 0; ///< for the memory link that the worker opens to the controller's endpoint
  exposed_region completions; ///< `slots` completion slots, remote write
  std::string controller;     ///< node id
  uint64_t heartbeat_ms = 0;  ///< how often the worker's loop must advance its epoch
  uint64_t lease_ms = 0;      ///< for how long tasks may run without a sign of the controller

  bool operator==(const join_accepted&) const = default;
};

/// One attempt of a task in a slot of a worker.
struct slot_task {
  uint32_t slot = 0;
  uint32_t attempt = 0;
  uint64_t job = 0;
  uint64_t task = 0;

  auto operator<=>(const slot_task&) const = default;
};

/// The controller to a worker: kill these tasks (their ends are reported like any other). It may
/// overtake the write that starts one of them.
struct kill_tasks {
  std::vector<slot_task> tasks;
  bool operator==(const kill_tasks&) const = default;
};

/// The controller to a worker: the output of this task has been read, the worker may forget it.
struct output_taken {
  slot_task what;
  bool operator==(const output_taken&) const = default;
};

/// The controller to a worker: leave the cluster and end.
struct leave_now {
  std::string reason;
  bool operator==(const leave_now&) const = default;
};

/// The controller to a worker: this incarnation counts as dead, what it ran starts again elsewhere.
/// The worker may join as a new one.
struct declared_dead {
  incarnation_id incarnation = 0;
  std::string reason;
  bool operator==(const declared_dead&) const = default;
};

/// A worker to the controller: it leaves, and the processes of its tasks are gone. Answer: nothing,
/// once the controller knows; then the worker closes its connection.
struct leaving {
  incarnation_id incarnation = 0;
  bool operator==(const leaving&) const = default;
};

// -- serialization
// --------------------------------------------------------------------------------------------

template <class Inspector>
auto inspect(Inspector& f, submit_request& x) {
  return f(x.name, x.user, x.argv, x.env, x.cwd, x.cpus, x.memory, x.is_array, x.first, x.last);
}

template <class Inspector>
auto inspect(Inspector& f, submitted& x) {
  return f(x.job);
}

template <class Inspector>
auto inspect(Inspector& f, job_summary& x) {
  return f(x.id, x.name, x.user, x.state, x.tasks, x.queued, x.running, x.succeeded, x.failed,
           x.cancelled, x.restarts, x.exit_status, x.waiting, x.age_ms, x.run_ms);
}

template <class Inspector>
auto inspect(Inspector& f, task_summary& x) {
  return f(x.index, x.state, x.node, x.attempt, x.exit_code, x.signal, x.reason, x.run_ms,
           x.stdout_bytes, x.stderr_bytes);
}

template <class Inspector>
auto inspect(Inspector& f, list_jobs_request&) {
  return f();
}

template <class Inspector>
auto inspect(Inspector& f, job_request& x) {
  return f(x.job);
}

template <class Inspector>
auto inspect(Inspector& f, job_details& x) {
  return f(x.summary, x.request, x.tasks);
}

template <class Inspector>
auto inspect(Inspector& f, wait_request& x) {
  return f(x.job);
}

template <class Inspector>
auto inspect(Inspector& f, output_request& x) {
  return f(x.job, x.task, x.standard_error, x.offset, x.most);
}

template <class Inspector>
auto inspect(Inspector& f, output_chunk& x) {
  return f(x.bytes, x.total, x.ended);
}

template <class Inspector>
auto inspect(Inspector& f, cancel_request& x) {
  return f(x.job);
}

template <class Inspector>
auto inspect(Inspector& f, node_summary& x) {
  return f(x.id, x.incarnation, x.roles, x.state, x.address, x.path, x.cpus, x.cpus_granted,
           x.memory, x.memory_granted, x.running, x.finished, x.epoch, x.cpu_busy_permille,
           x.memory_available, x.heard_ms_ago);
}

template <class Inspector>
auto inspect(Inspector& f, list_nodes_request&) {
  return f();
}

template <class Inspector>
auto inspect(Inspector& f, info_request&) {
  return f();
}

template <class Inspector>
auto inspect(Inspector& f, cluster_info& x) {
  return f(x.version, x.controller, x.device, x.device_reason, x.uptime_ms);
}

template <class Inspector>
auto inspect(Inspector& f, command_request& x) {
  return f(x.actor, x.words);
}

template <class Inspector>
auto inspect(Inspector& f, list_actors_request&) {
  return f();
}

template <class Inspector>
auto inspect(Inspector& f, shutdown_request&) {
  return f();
}

template <class Inspector>
auto inspect(Inspector& f, exposed_region& x) {
  return f(x.address, x.length, x.key);
}

template <class Inspector>
auto inspect(Inspector& f, join_request& x) {
  return f(x.id, x.incarnation, x.roles, x.address, x.cpus, x.memory, x.slots, x.inbox, x.state,
           x.lease);
}

template <class Inspector>
auto inspect(Inspector& f, join_accepted& x) {
  return f(x.token, x.completions, x.controller, x.heartbeat_ms, x.lease_ms);
}

template <class Inspector>
auto inspect(Inspector& f, slot_task& x) {
  return f(x.slot, x.attempt, x.job, x.task);
}

template <class Inspector>
auto inspect(Inspector& f, kill_tasks& x) {
  return f(x.tasks);
}

template <class Inspector>
auto inspect(Inspector& f, output_taken& x) {
  return f(x.what);
}

template <class Inspector>
auto inspect(Inspector& f, leave_now& x) {
  return f(x.reason);
}

template <class Inspector>
auto inspect(Inspector& f, declared_dead& x) {
  return f(x.incarnation, x.reason);
}

template <class Inspector>
auto inspect(Inspector& f, leaving& x) {
  return f(x.incarnation);
}

/// Makes all of the above known to an actor system that is to be made from `config`.
void add_message_types(caf::actor_system_config& config);

} // namespace troupe::cluster
