// CAF's BASP broker with two short cuts: proxies that send by themselves, and messages that are
// delivered where they arrived. Internal.
#pragma once

#include "caf/basp_header.hpp"
#include "caf/caf_version.hpp"
#include "troupe/transport/bytes.hpp"

#include <caf/io/basp_broker.hpp>

namespace troupe::transport {

/// Takes the place of CAF's broker under its name ("BASP"). Handshakes, monitors, routing and
/// heartbeats are CAF's own.
class node_broker final : public caf::io::basp_broker {
public:
  explicit node_broker(caf::actor_config& config) : basp_broker(config) {}

  /// Any thread.
  caf::strong_actor_ptr make_proxy(caf::node_id node, caf::actor_id actor) override;
  void set_last_hop(caf::node_id* hop) override;

  /// The node at the other end of `connection`; none before the handshake. Any thread.
  caf::node_id peer_of(caf::io::connection_handle connection) const;

  /// Hands a message from the node `peer` to its actor, as CAF would after the broker's turn.
  /// `what` is a valid header of a direct message, `payload` what follows it. Messages of one
  /// connection are given in order. A payload that makes no sense is dropped and logged, like CAF
  /// does. The loop, or any thread that has been given a number by `reserve`.
  void deliver(caf::execution_unit& context, const caf::node_id& peer, const basp::header& what,
               byte_view payload);

  /// Notes that `connection` is alive, for CAF's time-outs. The loop.
  void heard_from(caf::io::connection_handle connection);
};

} // namespace troupe::transport
