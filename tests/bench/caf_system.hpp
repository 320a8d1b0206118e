// The actor systems under test.
#pragma once

#include "row.hpp"

#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

namespace bench {

/// The configuration that belongs to a column: which middleman, which scheduler.
struct caf_config : caf::actor_system_config {
  explicit caf_config(const context& c);
};

/// Publishes `whom`, prints the port and waits until it has ended. @returns the exit status.
int serve_actor(const context& c, caf::actor_system& system, const caf::actor& whom);

/// The actor published at `port`. Throws `std::runtime_error`.
caf::actor connect_to(const context& c, caf::actor_system& system, const std::string& port);

/// The measuring side: a peer process that serves an actor, and a system connected to it. At the
/// end the peer's actor is told to end.
class caf_client {
public:
  /// Throws `std::runtime_error` when there is no connection.
  caf_client(const context& c, const std::string& role, std::vector<std::string> arguments = {});
  ~caf_client();
  caf_client(const caf_client&) = delete;
  caf_client& operator=(const caf_client&) = delete;

  caf::actor_system& system() noexcept { return system_; }
  const caf::actor& server() const noexcept { return server_; }
  pid_t peer() const noexcept { return peer_->id(); }
  const std::string& port() const noexcept { return port_; }

private:
  std::unique_ptr<child> peer_;
  std::string port_;
  caf_config config_;
  caf::actor_system system_;
  caf::actor server_;
};

} // namespace bench
