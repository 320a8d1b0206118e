// A worker: joins the controller, runs the tasks that are written into its memory, and reports
// their ends.
#pragma once

#include "troupe/framework/node.hpp"
#include "troupe/transport/endpoint.hpp"

#include <caf/actor.hpp>

namespace troupe::cluster {

/// Spawns the worker of `host`, which must outlive it, for the controller at `where`. It ends with
///  - `exit_reason::normal` when it was told to leave,
///  - `exit_reason::user_shutdown` after `stop_worker`,
///  - the `caf::error` of a `troupe::error` when it was refused, or could not reach the controller
///    for `membership.rejoin_for`.
/// A controller that is lost is looked for again that long; the tasks are killed at once, and the
/// worker joins as a new incarnation.
caf::actor spawn_worker(node& host, const transport::endpoint& where);

/// Makes a worker kill its tasks, say goodbye and end.
void stop_worker(const caf::actor& worker);

} // namespace troupe::cluster
