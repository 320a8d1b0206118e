// What a worker exposes to the controller, and its end of the memory link. Internal.
#pragma once

#include "troupe/actors/messages.hpp"
#include "troupe/actors/state_page.hpp"
#include "troupe/actors/task_lease.hpp"
#include "troupe/framework/node_info.hpp"
#include "troupe/transport/endpoint.hpp"
#include "troupe/transport/memory_service.hpp"
#include "troupe/transport/middleman.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace troupe::cluster {

/// One incarnation's memory and link. Called from any thread unless it says otherwise; the handlers
/// are called on the loop thread and only pass on.
class worker_memory : public std::enable_shared_from_this<worker_memory> {
public:
  struct events {
    std::function<void()> opened;
    std::function<void(uint32_t slot, std::vector<std::byte> record)> assigned;
    std::function<void(const error&)> closed;
  };

  static result<std::shared_ptr<worker_memory>>
  create(transport::middleman& network, incarnation_id node, uint32_t slots, events handlers);

  exposed_region inbox() const;
  exposed_region state() const;
  exposed_region lease() const;

  /// Called with every new end of the lease of the tasks, on the loop thread; passes on without
  /// waiting. Once this has returned the handler before is called no more.
  void on_lease(std::function<void(boot_clock::time_point end)> handler);

  /// Opens the link to the controller at the numeric address `controller`.
  void connect(const transport::endpoint& controller, const join_accepted& terms,
               std::chrono::milliseconds timeout);

  /// Writes the record of a task's end into the controller's memory and gives notice.
  void report(uint32_t slot, std::vector<std::byte> record);

  /// Reads a block of the controller's memory; `done` is called on the loop thread.
  void read(const exposed_region& from, std::function<void(result<std::vector<std::byte>>)> done);

  /// What the next beat writes into the state page, besides the epoch.
  void set_figures(const state_snapshot& figures);

  /// Lets the peer read memory that the caller keeps for as long as the region.
  result<std::unique_ptr<transport::memory_region>> expose(transport::byte_view bytes);

  /// Stops the beat and closes the link; `closed` is not called for it.
  void close();

private:
  worker_memory(transport::middleman& network, incarnation_id node, uint32_t slots);

  void beat();
  void on_notice(uint32_t slot);
  void on_renewal();
  void tell_lease(boot_clock::time_point end);
  void fail_link(const error& reason);

  transport::middleman& network_;
  incarnation_id node_;
  uint32_t slots_;
  std::unique_ptr<transport::memory_region> inbox_;
  std::unique_ptr<transport::memory_region> page_;
  std::unique_ptr<transport::memory_region> seen_; // the newest epoch that the controller has seen
  std::optional<state_page_writer> writer_;
  std::unique_ptr<transport::memory_region> outgoing_; // a record a slot, while it is being written

  std::mutex lease_guard_;
  std::function<void(boot_clock::time_point)> lease_handler_;

  std::mutex guard_;
  state_snapshot figures_;

  // loop thread
  events handlers_;
  transport::link_ptr link_;
  exposed_region completions_;
  std::chrono::milliseconds heartbeat_{500};
  uint64_t epoch_ = 0;
  std::optional<task_lease> lease_;
  bool closed_ = false;
};

} // namespace troupe::cluster
