// The controller of a cluster: membership, scheduler, monitor and resources on one node.
#pragma once

#include "troupe/framework/node.hpp"
#include "troupe/transport/endpoint.hpp"
#include "troupe/transport/error.hpp"

#include <caf/actor.hpp>
#include <memory>
#include <string>

namespace troupe::cluster {

/// Runs on `host`, which must outlive it and whose configuration it obeys.
class controller {
public:
  /// Starts the actors and publishes the controller at the node's `listen` endpoint.
  /// @returns what stands in the way: the port in use, no spool directory ...
  static result<std::unique_ptr<controller>> start(node& host);

  /// Ends as if by `stop`, without waiting for the workers.
  ~controller();

  controller(const controller&) = delete;
  controller& operator=(const controller&) = delete;

  /// Where it listens.
  const transport::endpoint& listening() const noexcept { return listening_; }

  /// Answers the requests of messages.hpp; ends when the cluster was told to shut down.
  const caf::actor& actor() const noexcept { return actor_; }

  /// Tells the workers to end, and ends.
  void stop();

private:
  controller() = default;

  caf::actor actor_;
  transport::endpoint listening_;
};

} // namespace troupe::cluster
