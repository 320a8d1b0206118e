// What of the verbs device can be tested on a machine without an adapter.
#include <doctest/doctest.h>
#include <verbs/message_header.hpp>
#include <verbs/socket_address.hpp>
#include <verbs/verbs_device.hpp>

#include <sys/socket.h>

using namespace troupe;
using namespace troupe::transport;
using namespace troupe::transport::verbs;

TEST_CASE("every adapter is usable or says why not") {
  for (const auto& candidate : list_verbs_devices()) {
    CHECK(candidate.name.starts_with("verbs:"));
    CHECK_FALSE(candidate.detail.empty());
    if (candidate.usable)
      CHECK_FALSE(candidate.address.empty());
  }
}

TEST_CASE("an unknown adapter is refused with what there is") {
  auto opened = open_verbs_device("no-such-adapter");
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code() == errc::no_such_device);
  const auto& text = opened.error().text();
  CHECK(text.find("'no-such-adapter'") != std::string::npos);
  auto present = list_verbs_devices();
  if (present.empty())
    CHECK(text.find("this machine has none") != std::string::npos);
  for (const auto& candidate : present)
    CHECK(text.find(candidate.name.substr(6)) != std::string::npos);
}

TEST_CASE("a message header survives the wire, and nonsense is refused") {
  message_header header{message_header::kind::notify, 0xfedcba98, 0x123456789abcdef0};
  auto wire = header.encode();
  CHECK(wire[0] == std::byte{2});
  CHECK(wire[4] == std::byte{0x98});
  CHECK(wire[8] == std::byte{0xf0});
  auto back = message_header::decode(wire);
  REQUIRE(back);
  CHECK(back->what == message_header::kind::notify);
  CHECK(back->immediate == 0xfedcba98);
  CHECK(back->length == 0x123456789abcdef0);
  for (auto kind : {0, 3, 255}) {
    wire[0] = static_cast<std::byte>(kind);
    CHECK_FALSE(message_header::decode(wire));
  }
}

TEST_CASE("numeric addresses are read, named and told apart") {
  auto v4 = verbs::resolve({"10.1.2.3", 80}, name_lookup::numeric_only);
  REQUIRE(v4);
  CHECK(v4->family() == AF_INET);
  CHECK(v4->to_endpoint() == endpoint{"10.1.2.3", 80});
  CHECK_FALSE(v4->is_loopback());
  CHECK_FALSE(v4->is_link_local());
  CHECK_FALSE(v4->is_any());
  auto v6 = verbs::resolve({"fd00::1", 4747}, name_lookup::numeric_only);
  REQUIRE(v6);
  CHECK(v6->to_endpoint() == endpoint{"fd00::1", 4747});
  for (auto host : {"127.0.0.1", "127.8.9.1", "::1", "localhost"})
    CHECK(verbs::resolve({host, 1}, name_lookup::numeric_only)->is_loopback());
  for (auto host : {"169.254.1.2", "fe80::1"})
    CHECK(verbs::resolve({host, 1}, name_lookup::numeric_only)->is_link_local());
  for (auto host : {"", "0.0.0.0", "::"})
    CHECK(verbs::resolve({host, 1}, name_lookup::numeric_only)->is_any());
}

TEST_CASE("a name is not looked up where that could block") {
  auto refused = verbs::resolve({"node1.invalid", 1}, name_lookup::numeric_only);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == errc::cannot_resolve);
  CHECK(refused.error().text().find("'node1.invalid'") != std::string::npos);
}
