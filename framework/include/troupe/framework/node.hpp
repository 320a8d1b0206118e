// A node: an actor system on Troupe's network, made from a checked configuration.
#pragma once

#include "troupe/framework/config.hpp"
#include "troupe/framework/node_info.hpp"
#include "troupe/transport/endpoint.hpp"
#include "troupe/transport/error.hpp"
#include "troupe/transport/middleman.hpp"

#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <functional>
#include <memory>

namespace troupe {

/// Owns the actor system; its end waits until every actor has ended. Any thread.
class node {
public:
  /// Registers an application's message and actor types before the system starts.
  using customizer = std::function<void(caf::actor_system_config&)>;

  /// Starts a node with the device that `config` names.
  /// @returns `errc::no_such_device` and what else opening the device brings.
  static result<std::unique_ptr<node>> start(node_config config, const customizer& customize = {});

  node(const node&) = delete;
  node& operator=(const node&) = delete;

  const node_config& config() const noexcept { return config_; }
  caf::actor_system& system() noexcept { return *system_; }
  transport::middleman& network() { return transport::middleman::of(*system_); }

  /// Makes `whom` reachable at `where`; its memory links come in there too. An empty host means
  /// every address of the device with a key, 127.0.0.1 without.
  /// @returns the endpoint, with the port that was chosen when 0 was asked for;
  /// `errc::address_in_use`, `errc::cannot_resolve`, `errc::unauthenticated` when others than this
  /// machine reach the address and there is no key ...
  result<transport::endpoint> publish(const caf::actor& whom, const transport::endpoint& where);

  /// Connects to the actor published at `where`; blocks until it answers or the connection fails.
  result<caf::actor> connect(const transport::endpoint& where);

private:
  explicit node(node_config config);

  node_config config_;
  caf::actor_system_config actor_config_;
  std::unique_ptr<caf::actor_system> system_;
};

} // namespace troupe
