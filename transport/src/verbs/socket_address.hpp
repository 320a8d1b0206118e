// Numeric socket addresses as rdma_cm takes them.
#pragma once

#include "troupe/transport/endpoint.hpp"

#include <string>
#include <sys/socket.h>
#include <vector>

namespace troupe::transport::verbs {

/// An IPv4 or IPv6 address with a port.
class socket_address {
public:
  socket_address() = default; ///< of no family
  explicit socket_address(const sockaddr* from);

  /// Every local address of `family`.
  static socket_address any(int family, uint16_t port);

  int family() const noexcept { return storage_.ss_family; }
  uint16_t port() const noexcept;
  void set_port(uint16_t port) noexcept;
  bool is_loopback() const noexcept;
  bool is_link_local() const noexcept;
  bool is_any() const noexcept;

  /// The numeric host, without the port; empty for no family.
  std::string host() const;
  endpoint to_endpoint() const { return {host(), port()}; }

  sockaddr* raw() noexcept { return reinterpret_cast<sockaddr*>(&storage_); }
  const sockaddr* raw() const noexcept { return reinterpret_cast<const sockaddr*>(&storage_); }

private:
  sockaddr_storage storage_ = {};
};

/// Whether host names may be looked up, which can block for seconds.
enum class name_lookup { allowed, numeric_only };

/// The address of `where`; an empty host gives the IPv4 "any" address, and "localhost" needs no
/// look-up.
/// @returns `errc::cannot_resolve`.
result<socket_address> resolve(const endpoint& where, name_lookup lookup);

} // namespace troupe::transport::verbs
