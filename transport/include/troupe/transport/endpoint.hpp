// Where a node listens or is reached: host and port.
#pragma once

#include "troupe/transport/error.hpp"

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::transport {

/// A host (name, IPv4 or IPv6 address without brackets; empty for every local address) and a port
/// (0 for one that the system chooses).
struct endpoint {
  std::string host;
  uint16_t port = 0;

  auto operator<=>(const endpoint&) const = default;
};

/// The address of this machine that nobody else reaches.
inline constexpr auto loopback_host = "127.0.0.1";

/// Whether `where`, a numeric address, is reached from this machine only.
bool is_loopback(const endpoint& where);

/// Whether `host` is a numeric address that others than this machine may reach. Says nothing of
/// names.
bool is_open_address(const std::string& host);

/// `host:port`, with brackets around an IPv6 address.
std::string to_string(const endpoint& where);

/// Reads `host:port`, `[v6]:port`, `:port` or, when `default_port` is not 0, a host alone.
/// @returns `errc::invalid_argument` with a text that quotes the input.
result<endpoint> parse_endpoint(std::string_view text, uint16_t default_port = 0);

} // namespace troupe::transport
