// The scheduler: routes requests, assignments and ends of tasks to and from `scheduler_state`.
// Internal.
#pragma once

#include "controller/local_messages.hpp"
#include "controller/output_store.hpp"
#include "troupe/actors/completion_slot.hpp"
#include "troupe/actors/messages.hpp"
#include "troupe/actors/resource_book.hpp"
#include "troupe/actors/scheduler_state.hpp"

#include <caf/event_based_actor.hpp>
#include <caf/response_promise.hpp>
#include <caf/typed_response_promise.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace troupe::cluster {

/// State of the scheduler actor; made by `caf::actor_system::spawn(scheduler_actor, ...)`.
class scheduler {
public:
  scheduler(caf::event_based_actor* self, output_store store, uint32_t retries);

  caf::behavior make_behavior();

private:
  using waiting_client = caf::typed_response_promise<job_summary>;

  struct worker {
    std::string id;
    std::shared_ptr<worker_port> port;
    caf::actor handle;
    std::map<uint32_t, assignment> running; // by slot
  };

  /// Output that is too long for a record, on its way here.
  struct transfer {
    assignment what;
    task_outcome outcome;
    transport::remote_region source[2]; // standard output and error
    output_extent kept[2];
    uint64_t done[2] = {0, 0}; // bytes
  };

  struct task_output {
    output_extent standard_output;
    output_extent standard_error;
  };

  // requests of the command line
  caf::result<submitted> submit(submit_request& request);
  caf::result<job_details> describe(const job_request& request);
  caf::result<job_summary> wait_for(const wait_request& request);
  caf::result<output_chunk> read_output(const output_request& request);
  caf::result<job_summary> cancel(const cancel_request& request);
  caf::result<std::string> command(const std::vector<std::string>& words);

  // workers
  void add(const worker_added& what);
  void remove(const worker_removed& what);
  books report_books() const;

  // tasks
  void assign_what_can();
  void dispatch(const assignment& what);
  void on_finished(const slot_finished& report);
  void fail_to_start(const assignment& what, const error& why);
  void begin_transfer(const assignment& what, const task_outcome& outcome,
                      const remote_output& from);
  void continue_transfer(uint64_t id);
  void on_part(output_part& part);
  void conclude(const assignment& what, const task_outcome& outcome, const task_output& output);
  void tell_waiting(job_id job);

  caf::event_based_actor* self_;
  output_store store_;
  resource_book book_;
  scheduler_state state_;
  std::map<incarnation_id, worker> workers_;
  std::unordered_map<uint64_t, transfer> transfers_;
  uint64_t last_transfer_ = 0;
  std::map<task_ref, task_output> outputs_;
  std::multimap<job_id, waiting_client> waiting_;
};

} // namespace troupe::cluster
