#include "soft/socket_address.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

namespace troupe::transport::soft {

namespace {

constexpr int backlog = 512;

result<descriptor> listen_at(const socket_address& address, const endpoint& where) {
  auto what = "listening on " + to_string(where);
  descriptor socket{
      ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP)};
  if (!socket)
    return fail(system_error(what, errno));
  int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (where.host.empty() && address.storage.ss_family == AF_INET6) {
    int off = 0;
    setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  if (::bind(socket.get(), address.get(), address.size) != 0 ||
      ::listen(socket.get(), backlog) != 0)
    return fail(system_error(what, errno));
  return socket;
}

socket_address every_address(sa_family_t family, uint16_t port) {
  socket_address address;
  address.storage.ss_family = family;
  if (family == AF_INET6) {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(address.storage);
    v6.sin6_addr = in6addr_any;
    v6.sin6_port = htons(port);
    address.size = sizeof v6;
  } else {
    auto& v4 = reinterpret_cast<sockaddr_in&>(address.storage);
    v4.sin_addr.s_addr = htonl(INADDR_ANY);
    v4.sin_port = htons(port);
    address.size = sizeof v4;
  }
  return address;
}

} // namespace

result<socket_address> resolve(const endpoint& where, bool to_listen) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (to_listen ? AI_PASSIVE : AI_NUMERICHOST);
  addrinfo* found = nullptr;
  auto port = std::to_string(where.port);
  if (int failed = getaddrinfo(where.host.c_str(), port.c_str(), &hints, &found); failed != 0)
    return fail(errc::cannot_resolve,
                "resolving '" + where.host + "': " + gai_strerror(failed) +
                    (to_listen ? "" : " (connecting needs a numeric address)"));
  socket_address address;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  address.size = found->ai_addrlen;
  freeaddrinfo(found);
  return address;
}

endpoint to_endpoint(const socket_address& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.storage.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address.storage);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    return {text, ntohs(v4.sin_port)};
  }
  if (address.storage.ss_family != AF_INET6)
    return {};
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address.storage);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text, sizeof text);
    return {text, ntohs(v6.sin6_port)};
  }
  inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
  std::string host = text;
  if (v6.sin6_scope_id != 0)
    host += "%" + std::to_string(v6.sin6_scope_id);
  return {host, ntohs(v6.sin6_port)};
}

endpoint local_end(int socket) {
  socket_address address;
  address.size = sizeof address.storage;
  if (getsockname(socket, address.get(), &address.size) != 0)
    return {};
  return to_endpoint(address);
}

endpoint remote_end(int socket) {
  socket_address address;
  address.size = sizeof address.storage;
  if (getpeername(socket, address.get(), &address.size) != 0)
    return {};
  return to_endpoint(address);
}

void tune(int socket) {
  auto set = [socket](int level, int option, int value) {
    setsockopt(socket, level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
}

result<descriptor> open_listener(const endpoint& where) {
  if (!where.host.empty()) {
    auto address = resolve(where, true);
    if (!address)
      return fail(address.error());
    return listen_at(*address, where);
  }
  auto made = listen_at(every_address(AF_INET6, where.port), where);
  // A machine without IPv6 refuses the family or the address.
  if (!made && made.error().code() != errc::address_in_use &&
      made.error().code() != errc::permission_denied)
    made = listen_at(every_address(AF_INET, where.port), where);
  return made;
}

} // namespace troupe::transport::soft
