// Everything that belongs to one incarnation of a worker: its memory, its tasks and their outputs.
// Internal.
#pragma once

#include "troupe/actors/completion_slot.hpp"
#include "troupe/actors/messages.hpp"
#include "troupe/actors/task_runner.hpp"
#include "troupe/actors/task_slot.hpp"
#include "troupe/framework/node_info.hpp"
#include "troupe/transport/device.hpp"
#include "troupe/transport/error.hpp"
#include "worker/worker_memory.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace troupe::cluster {

/// Belongs to the worker's actor: one thread at a time. Destroying it kills every task and waits
/// until they are gone.
class worker_session {
public:
  /// Called on a helper thread; passes on.
  using event_handler = std::function<void(std::shared_ptr<task_event>)>;

  struct options {
    std::string node_id;
    uint32_t slots = 0;
    std::filesystem::path spool;
  };

  static result<std::unique_ptr<worker_session>> create(std::shared_ptr<worker_memory> memory,
                                                        options chosen, event_handler on_event);
  ~worker_session();
  worker_session(const worker_session&) = delete;
  worker_session& operator=(const worker_session&) = delete;

  worker_memory& memory() noexcept { return *memory_; }

  /// Starts a task in `slot`, or reports why it cannot be started.
  void start(uint32_t slot, const task_order& order);

  /// Reports that what was written into `slot` makes no sense; ends nothing else.
  void refuse(uint32_t slot, const slot_task& what, const std::string& why);

  /// A task was started, failed to start or ended. @returns why all tasks are lost, when they are.
  status on_event(task_event& event);

  /// Kills these tasks, or lets them die as soon as they arrive.
  void kill(const std::vector<slot_task>& tasks);

  /// Kills every task and waits until they are gone; their ends are not reported. Nothing can be
  /// started afterwards.
  void end_tasks();

  /// Frees the output that the controller has taken.
  void forget_output(const slot_task& what);

  size_t running() const noexcept { return slot_of_.size(); }
  uint64_t finished() const noexcept { return finished_; }

  /// One line for each running task.
  std::string describe() const;

private:
  /// A long output, kept until the controller has read it. The region goes before the mapping.
  struct kept_output {
    mapped_output bytes;
    std::unique_ptr<transport::memory_region> region;
  };

  struct slot_state {
    slot_task what;
    uint64_t launch = 0; // the runner's id; 0: nothing runs
    std::string program;
    kept_output outputs[2];
  };

  worker_session(std::shared_ptr<worker_memory> memory, options chosen);

  void report(uint32_t slot, const task_completion& end);
  result<transport::remote_region> keep(captured_output& output, kept_output& where);
  static result<inline_output> take_short(const task_ended& ended);
  void on_ended(task_ended& ended);
  slot_state* ended_slot(uint64_t launch, uint32_t& slot);

  std::shared_ptr<worker_memory> memory_;
  options options_;
  std::vector<slot_state> slots_;
  std::map<uint64_t, uint32_t> slot_of_; // by launch
  std::set<slot_task> doomed_;           // killed before they arrived
  uint64_t last_launch_ = 0;
  uint64_t finished_ = 0;
  std::unique_ptr<task_runner> runner_;
  std::thread events_; // the spawn helper
};

} // namespace troupe::cluster
