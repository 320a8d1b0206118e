// From a host name to the addresses to try.
#pragma once

#include "troupe/transport/endpoint.hpp"

#include <vector>

namespace troupe::transport {

/// Numeric endpoints for `where`, in the order that the system prefers, IPv4 and IPv6 alike.
/// Blocks: never on the loop thread.
/// @returns `errc::cannot_resolve` with the resolver's reason.
result<std::vector<endpoint>> resolve(const endpoint& where);

} // namespace troupe::transport
