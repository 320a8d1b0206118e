// A remote actor whose messages are serialized by the thread that sends them. Internal.
#pragma once

#include "caf/caf_version.hpp"
#include "caf/outbox.hpp"

#include <atomic>
#include <caf/forwarding_actor_proxy.hpp>
#include <memory>

namespace troupe::transport {

class node_broker;

/// CAF's own proxy hands every message to its BASP broker, which serializes it on the network
/// thread. This one writes what the broker would write into the outbox of the connection. By the
/// broker still go messages of third nodes, which must be routed, and links: CAF holds the lock of
/// an actor while it links it, and serializing its handle takes that lock.
class direct_proxy final : public caf::forwarding_actor_proxy {
public:
  explicit direct_proxy(caf::actor_config& config, node_broker& broker);

  void enqueue(caf::mailbox_element_ptr what, caf::execution_unit* context) override;

private:
  bool send(caf::mailbox_element_ptr& what);
  void refuse(const caf::strong_actor_ptr& sender, caf::message_id id, const caf::error& why);

  node_broker& broker_;
  caf::strong_actor_ptr keeper_;               // of the broker
  std::atomic<caf::actor_id> last_sender_ = 0; // known to be registered
};

} // namespace troupe::transport
