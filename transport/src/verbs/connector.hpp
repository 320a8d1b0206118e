// Connection management events of one device.
#pragma once

#include "adapter.hpp"

#include <chrono>
#include <deque>
#include <optional>

namespace troupe::transport::verbs {

class connection;
struct completion_entries;

using clock = std::chrono::steady_clock;

/// An rdma_cm event, copied so that the original can be acknowledged at once: destroying an id
/// waits for that.
struct cm_event {
  rdma_cm_event_type type = RDMA_CM_EVENT_ADDR_RESOLVED;
  int status = 0;
  rdma_cm_id* id = nullptr; ///< of a request: the new one, to be owned by who handles it
  std::vector<std::byte> private_data;
  uint8_t responder_resources = 0;
  uint8_t initiator_depth = 0;
};

/// What an id's context points to.
class event_target {
public:
  virtual ~event_target() = default;
  virtual std::optional<connection_event> on_event(cm_event& event) = 0;
};

/// A queue pair whose connection was destroyed while it was being set up. On iWARP, destroying its
/// id would block until that has ended, so it waits here for the event.
class leftover final : public event_target {
public:
  leftover(std::shared_ptr<const completion_entries> entries, id_handle id,
           id_queue_pair_handle queues);
  std::optional<connection_event> on_event(cm_event&) override { return std::nullopt; }

private:
  std::shared_ptr<const completion_entries> entries_;
  id_handle id_;
  id_queue_pair_handle queues_;
};

/// Hands events to their targets and keeps their deadlines. Event-loop thread only.
class connector {
public:
  static result<std::shared_ptr<connector>> create(std::shared_ptr<adapter> on);

  const std::shared_ptr<adapter>& shared_adapter() const noexcept { return adapter_; }
  int fd() const noexcept { return poll_set_.get(); }

  /// The next event that concerns the user.
  std::optional<connection_event> next();

  /// Makes an id whose events go to `target`.
  result<id_handle> make_id(event_target* target);

  /// Queues an event that did not come from the adapter.
  void announce(connection_event event);

  /// Calls `user.expire` once its `wake_at` has come; call again when that changes.
  void watch(connection& user);

  /// Destroys `rest` once an event for it has come.
  void retire(std::unique_ptr<leftover> rest) { leftovers_.push_back(std::move(rest)); }

  /// Forgets every event and deadline of these.
  void forget(const connection& user);
  void forget(const listener& source);

private:
  explicit connector(std::shared_ptr<adapter> on) : adapter_(std::move(on)) {}
  status open();
  std::optional<connection_event> next_from_channel();
  std::optional<connection_event> next_expired();
  void log_adapter_events();
  void set_timer();

  std::shared_ptr<adapter> adapter_;
  event_channel_handle channel_;
  descriptor timer_;
  descriptor poll_set_;
  std::deque<connection_event> announced_;
  std::vector<connection*> watched_;
  std::vector<std::unique_ptr<leftover>> leftovers_;
};

} // namespace troupe::transport::verbs
