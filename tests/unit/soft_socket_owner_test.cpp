#include "soft/descriptor.hpp"
#include "soft/socket_owner.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace troupe::transport::soft;

namespace {

/// Both ends of a TCP connection within this process.
struct connection {
  descriptor client, server;
};

template <class Address>
connection connect_over(Address where, int client_family) {
  auto family = reinterpret_cast<sockaddr&>(where).sa_family;
  descriptor listener{::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  REQUIRE(listener);
  auto raw = reinterpret_cast<sockaddr*>(&where);
  socklen_t size = sizeof where;
  REQUIRE(::bind(listener.get(), raw, size) == 0);
  REQUIRE(::listen(listener.get(), 1) == 0);
  REQUIRE(::getsockname(listener.get(), raw, &size) == 0);
  connection made;
  made.client = descriptor{::socket(client_family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  REQUIRE(made.client);
  if (client_family == family) {
    REQUIRE(::connect(made.client.get(), raw, size) == 0);
  } else { // an IPv6 socket to an IPv4 address
    sockaddr_in6 mapped{};
    mapped.sin6_family = AF_INET6;
    REQUIRE(::inet_pton(AF_INET6, "::ffff:127.0.0.1", &mapped.sin6_addr) == 1);
    mapped.sin6_port = reinterpret_cast<sockaddr_in&>(where).sin_port;
    REQUIRE(::connect(made.client.get(), reinterpret_cast<sockaddr*>(&mapped), sizeof mapped) == 0);
  }
  made.server = descriptor{::accept(listener.get(), nullptr, nullptr)};
  REQUIRE(made.server);
  return made;
}

sockaddr_in v4_loopback() {
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return where;
}

constexpr auto table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when "
                       "retrnsmt   uid  timeout inode\n"
                       "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 "
                       "00000000  1000        0 4711 1 "
                       "0000000000000000 100 0 0 10 0\n"
                       "   1: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 "
                       "00000000  1001        0 4712 1 "
                       "0000000000000000 20 4 30 10 -1\n"
                       "   2: 0100007F:C350 0100007F:1F90 01 00000000:00000000 02:00000B53 "
                       "00000000  1002        0 4713 2 "
                       "0000000000000000 20 4 30 10 -1\n"
                       "   3: 0100007F:C351 0100007F:1F90 06 00000000:00000000 03:00000B53 "
                       "00000000     0        0 0 3 "
                       "0000000000000000\n"
                       "   4: 0100007F:C352 0100007F:1F90 01 00000000:00000000 00:00000000 "
                       "00000000     0        0 0 3 "
                       "0000000000000000\n"
                       "   5: 0100007F:C353 0100007F:1F90 01 0000";

} // namespace

TEST_CASE("the kernel's table tells whose an established connection is") {
  CHECK(find_owner(table, "0100007F:C350", "0100007F:1F90") == 1002U);
  CHECK(find_owner(table, "0100007F:1F90", "0100007F:C350") == 1001U);
  CHECK_FALSE(find_owner(table, "0100007F:1F90", "00000000:0000")); // listens only
  CHECK_FALSE(find_owner(table, "0100007F:C351", "0100007F:1F90")); // closed
  CHECK_FALSE(find_owner(table, "0100007F:C352", "0100007F:1F90")); // nobody holds it any more
  CHECK_FALSE(find_owner(table, "0100007F:C353", "0100007F:1F90")); // cut off
  CHECK_FALSE(find_owner(table, "0100007F:C354", "0100007F:1F90"));
  CHECK_FALSE(find_owner("", "0100007F:C350", "0100007F:1F90"));
}

TEST_CASE("the other end of a connection within this machine is found, in every form of address") {
  auto check = [](const connection& made) {
    CHECK(owner_of_peer(made.client.get()) == ::geteuid());
    CHECK(owner_of_peer(made.server.get()) == ::geteuid());
    CHECK(peer_is_same_user(made.server.get()));
  };
  check(connect_over(v4_loopback(), AF_INET));
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_addr = in6addr_loopback;
  descriptor probe{::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (!probe || ::bind(probe.get(), reinterpret_cast<sockaddr*>(&v6), sizeof v6) != 0) {
    MESSAGE("no IPv6 here");
    return;
  }
  check(connect_over(v6, AF_INET6));
  check(connect_over(v4_loopback(), AF_INET6));
}

TEST_CASE("who closed, or never connected, is nobody") {
  auto made = connect_over(v4_loopback(), AF_INET);
  made.client = descriptor{};
  CHECK_FALSE(owner_of_peer(made.server.get()));
  CHECK_FALSE(peer_is_same_user(made.server.get()));
  descriptor alone{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  CHECK_FALSE(owner_of_peer(alone.get()));
}
