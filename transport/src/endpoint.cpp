#include "troupe/transport/endpoint.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cctype>
#include <charconv>
#include <netinet/in.h>

namespace troupe::transport {

bool is_loopback(const endpoint& where) {
  in_addr v4{};
  if (inet_pton(AF_INET, where.host.c_str(), &v4) == 1)
    return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
  in6_addr v6{};
  if (inet_pton(AF_INET6, where.host.c_str(), &v6) != 1)
    return false;
  return IN6_IS_ADDR_LOOPBACK(&v6) ||
         (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == IN_LOOPBACKNET);
}

bool is_open_address(const std::string& host) {
  in6_addr any{};
  auto numeric =
      inet_pton(AF_INET, host.c_str(), &any) == 1 || inet_pton(AF_INET6, host.c_str(), &any) == 1;
  return numeric && !is_loopback({host, 0});
}

std::string to_string(const endpoint& where) {
  auto host = where.host.find(':') == std::string::npos ? where.host : '[' + where.host + ']';
  return host + ':' + std::to_string(where.port);
}

result<endpoint> parse_endpoint(std::string_view text, uint16_t default_port) {
  auto malformed = [&](std::string_view why) {
    return fail(errc::invalid_argument, '\'' + std::string{text} + "' is not host:port (" +
                                            std::string{why} +
                                            "); write node1:4747, 10.0.0.1:4747 or [::1]:4747");
  };
  if (std::any_of(text.begin(), text.end(),
                  [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }))
    return malformed("it has white space");
  auto host = text;
  auto rest = std::string_view{};
  if (text.starts_with('[')) {
    auto close = text.find(']');
    if (close == std::string_view::npos)
      return malformed("the bracket is not closed");
    host = text.substr(1, close - 1);
    rest = text.substr(close + 1);
  } else if (auto colon = text.find(':'); colon != std::string_view::npos) {
    if (text.find(':', colon + 1) != std::string_view::npos)
      return malformed("an IPv6 address needs brackets");
    host = text.substr(0, colon);
    rest = text.substr(colon);
  }
  if (rest.empty()) {
    if (default_port == 0 || host.empty())
      return malformed("the port is missing");
    return endpoint{std::string{host}, default_port};
  }
  if (!rest.starts_with(':'))
    return malformed("after the bracket comes ':' and the port");
  rest.remove_prefix(1);
  uint16_t port = 0;
  auto [end, failure] = std::from_chars(rest.data(), rest.data() + rest.size(), port);
  if (failure != std::errc{} || end != rest.data() + rest.size())
    return malformed("the port is a number from 0 to 65535");
  return endpoint{std::string{host}, port};
}

} // namespace troupe::transport
