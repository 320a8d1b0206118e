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

/// The actor that a peer published, whose first line is its port. Throws `std::runtime_error`.
caf::actor connect_to(const context& c, caf::actor_system& system, child& peer);

} // namespace bench
