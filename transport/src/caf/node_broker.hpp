// CAF's BASP broker with two short cuts: proxies that send by themselves, and messages that are
// delivered where they arrived. Internal.
#pragma once

#include "caf/basp_header.hpp"
#include "caf/caf_version.hpp"
#include "caf/outbox.hpp"
#include "troupe/transport/bytes.hpp"

#include <caf/io/basp_broker.hpp>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace troupe::transport {

/// Takes the place of CAF's broker under its name ("BASP"). Handshakes, monitors, routing and
/// heartbeats are CAF's own.
class node_broker final : public caf::io::basp_broker {
public:
  explicit node_broker(caf::actor_config& config) : basp_broker(config) {}

  /// Any thread.
  caf::strong_actor_ptr make_proxy(caf::node_id node, caf::actor_id actor) override;
  void set_last_hop(caf::node_id* hop) override;

  /// The outbox of the connection that messages to `node` take; null when there is none of ours.
  /// Any thread.
  std::shared_ptr<outbox> box_to(const caf::node_id& node);

  /// Bytes from which a run of them travels from where it lies.
  size_t long_run();

  /// The node at the other end of `connection`; none before the handshake. Any thread.
  caf::node_id peer_of(caf::io::connection_handle connection) const;

  /// A message for a local actor.
  struct arrival {
    caf::strong_actor_ptr receiver;
    caf::strong_actor_ptr sender;
    caf::message_id id;
    std::vector<caf::strong_actor_ptr> stages;
    caf::message content;
    std::vector<byte_span> places; ///< in `content`, for the bytes of the holes
  };

  /// Deserializes a message from the node `peer`. `what` is a valid header of a direct message,
  /// `payload` what follows it, after a layout if there is one, whose holes are `holes`. Any
  /// thread, with a context of its own.
  /// @returns nothing when its actor is gone (a request has been answered with an error then), or
  /// when it makes no sense (that is logged).
  std::optional<arrival> unpack(caf::execution_unit& context, const caf::node_id& peer,
                                const basp::header& what, byte_view payload,
                                std::span<const hole_place> holes);

  /// Hands a message to its actor. The messages of one connection come in order. The loop.
  void hand_over(caf::execution_unit& context, arrival message);

  /// Notes that `connection` is alive, for CAF's time-outs. The loop.
  void heard_from(caf::io::connection_handle connection);
};

} // namespace troupe::transport
