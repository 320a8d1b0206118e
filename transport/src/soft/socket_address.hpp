// Endpoints as the system's socket addresses.
#pragma once

#include "soft/descriptor.hpp"
#include "troupe/transport/endpoint.hpp"

#include <sys/socket.h>

namespace troupe::transport::soft {

struct socket_address {
  sockaddr_storage storage{};
  socklen_t size = 0;

  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() noexcept { return reinterpret_cast<sockaddr*>(&storage); }
};

/// Resolves a host to connect to or to listen on (then it may be a name, which may take a while).
/// @returns `errc::cannot_resolve` with the host in the text.
result<socket_address> resolve(const endpoint& where, bool to_listen);

/// The numeric form; an IPv4 address that is mapped into IPv6 is given as IPv4.
endpoint to_endpoint(const socket_address& address);

endpoint local_end(int socket);
endpoint remote_end(int socket);

/// Options of every connection: no delay, and keep-alive that notices a dead host in half a minute.
void tune(int socket);

/// Opens a listening socket, on every address (IPv6 and IPv4) when the host is empty.
result<descriptor> open_listener(const endpoint& where);

} // namespace troupe::transport::soft
