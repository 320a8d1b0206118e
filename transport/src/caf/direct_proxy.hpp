// A remote actor whose messages are serialized by the thread that sends them. Internal.
#pragma once

#include "caf/caf_version.hpp"
#include "caf/outbox.hpp"

#include <atomic>
#include <caf/forwarding_actor_proxy.hpp>
#include <memory>

namespace troupe::transport {

/// CAF's own proxy hands every message to its BASP broker, which serializes it on the network
/// thread. This one writes what the broker would write into the outbox of the connection. By the
/// broker still go messages of third nodes, which must be routed, and links: CAF holds the lock of
/// an actor while it links it, and serializing its handle takes that lock.
class direct_proxy final : public caf::forwarding_actor_proxy {
public:
  /// `box` belongs to the connection with the actor's node.
  direct_proxy(caf::actor_config& config, caf::actor broker, std::shared_ptr<outbox> box,
               size_t long_run);

  void enqueue(caf::mailbox_element_ptr what, caf::execution_unit* context) override;

private:
  bool send(caf::mailbox_element_ptr& what);
  void refuse(const caf::strong_actor_ptr& sender, caf::message_id id, const caf::error& why);

  std::shared_ptr<outbox> box_;
  size_t long_run_; // bytes from which an element travels from where it lies
  std::atomic<caf::actor_id> last_sender_ = 0; // known to be registered
};

} // namespace troupe::transport
