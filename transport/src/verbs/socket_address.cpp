#include "socket_address.hpp"

#include <arpa/inet.h>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>

namespace troupe::transport::verbs {

namespace {

const in_addr& v4(const sockaddr* from) {
  return reinterpret_cast<const sockaddr_in*>(from)->sin_addr;
}

const in6_addr& v6(const sockaddr* from) {
  return reinterpret_cast<const sockaddr_in6*>(from)->sin6_addr;
}

size_t size_of(int family) {
  return family == AF_INET6 ? sizeof(sockaddr_in6) : family == AF_INET ? sizeof(sockaddr_in) : 0;
}

} // namespace

socket_address::socket_address(const sockaddr* from) {
  if (from != nullptr)
    std::memcpy(&storage_, from, size_of(from->sa_family));
}

socket_address socket_address::any(int family, uint16_t port) {
  socket_address result;
  result.storage_.ss_family = static_cast<sa_family_t>(family);
  result.set_port(port);
  return result; // all zero bytes are INADDR_ANY and in6addr_any
}

uint16_t socket_address::port() const noexcept {
  switch (family()) {
  case AF_INET:
    return ntohs(reinterpret_cast<const sockaddr_in*>(raw())->sin_port);
  case AF_INET6:
    return ntohs(reinterpret_cast<const sockaddr_in6*>(raw())->sin6_port);
  default:
    return 0;
  }
}

void socket_address::set_port(uint16_t port) noexcept {
  if (family() == AF_INET)
    reinterpret_cast<sockaddr_in*>(raw())->sin_port = htons(port);
  else if (family() == AF_INET6)
    reinterpret_cast<sockaddr_in6*>(raw())->sin6_port = htons(port);
}

bool socket_address::is_loopback() const noexcept {
  if (family() == AF_INET)
    return (ntohl(v4(raw()).s_addr) >> 24) == 127;
  return family() == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6(raw()));
}

bool socket_address::is_link_local() const noexcept {
  if (family() == AF_INET)
    return (ntohl(v4(raw()).s_addr) >> 16) == 0xa9fe; // 169.254/16
  return family() == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&v6(raw()));
}

bool socket_address::is_any() const noexcept {
  if (family() == AF_INET)
    return v4(raw()).s_addr == INADDR_ANY;
  return family() == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&v6(raw()));
}

std::string socket_address::host() const {
  char text[INET6_ADDRSTRLEN] = {};
  const void* bytes = family() == AF_INET    ? static_cast<const void*>(&v4(raw()))
                      : family() == AF_INET6 ? static_cast<const void*>(&v6(raw()))
                                             : nullptr;
  if (bytes == nullptr || inet_ntop(family(), bytes, text, sizeof(text)) == nullptr)
    return {};
  return text;
}

result<socket_address> resolve(const endpoint& where, name_lookup lookup) {
  if (where.host.empty())
    return socket_address::any(AF_INET, where.port);
  auto host = where.host == "localhost" ? std::string{"127.0.0.1"} : where.host;
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = lookup == name_lookup::numeric_only ? AI_NUMERICHOST : 0;
  addrinfo* raw = nullptr;
  if (int rc = getaddrinfo(host.c_str(), nullptr, &hints, &raw); rc != 0)
    return fail(errc::cannot_resolve, "no address for host '" + host + "': " + gai_strerror(rc));
  std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> found{raw, &freeaddrinfo};
  socket_address result{found->ai_addr};
  result.set_port(where.port);
  return result;
}

} // namespace troupe::transport::verbs
