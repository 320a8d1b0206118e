// Who owns the other end of a TCP connection within this machine: the kernel tells it for sockets
// of this network namespace.
#pragma once

#include "troupe/transport/error.hpp"

#include <optional>
#include <string_view>
#include <sys/types.h>

namespace troupe::transport::soft {

/// The user whose process holds the other end of `socket`, a connected TCP socket; nothing when
/// that end is not on this machine or already closed.
std::optional<uid_t> owner_of_peer(int socket);

/// Whether that user is ours, or root.
bool peer_is_same_user(int socket);

/// The owner of the established connection from `local` to `remote`, each `address:port` in the
/// form of `table`, the text of /proc/net/tcp or tcp6.
std::optional<uid_t> find_owner(std::string_view table, std::string_view local,
                                std::string_view remote);

} // namespace troupe::transport::soft
