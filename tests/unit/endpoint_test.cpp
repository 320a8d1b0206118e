#include <doctest/doctest.h>
#include <troupe/transport/endpoint.hpp>

using troupe::errc;
using troupe::transport::endpoint;
using troupe::transport::is_loopback;
using troupe::transport::is_open_address;
using troupe::transport::parse_endpoint;

TEST_CASE("an endpoint is read and written alike") {
  for (auto text : {"host:1", "127.0.0.1:65535", "[::1]:80", ":0"}) {
    auto parsed = parse_endpoint(text);
    REQUIRE(parsed);
    CHECK(to_string(*parsed) == text);
  }
  CHECK(*parse_endpoint("[fe80::1%eth0]:7") == endpoint{"fe80::1%eth0", 7});
}

TEST_CASE("a host alone takes the default port") {
  CHECK(*parse_endpoint("node1", 4747) == endpoint{"node1", 4747});
  CHECK(*parse_endpoint("[::1]", 4747) == endpoint{"::1", 4747});
  CHECK_FALSE(parse_endpoint("node1"));
}

TEST_CASE("a malformed endpoint is refused with its text") {
  for (auto text :
       {"", "host:", "host:x", "host:65536", "host:-1", "[::1", "[::1]80", "::1:80", "a b:1"}) {
    CAPTURE(text);
    auto parsed = parse_endpoint(text);
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().code() == errc::invalid_argument);
    CHECK(parsed.error().text().find('\'' + std::string{text} + '\'') != std::string::npos);
  }
}

TEST_CASE("which addresses only this machine reaches") {
  for (auto host : {"127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"}) {
    CAPTURE(host);
    CHECK(is_loopback({host, 4747}));
    CHECK_FALSE(is_open_address(host));
  }
  for (auto host :
       {"0.0.0.0", "10.0.0.1", "128.0.0.1", "::", "::2", "::ffff:10.0.0.1", "fe80::1"}) {
    CAPTURE(host);
    CHECK_FALSE(is_loopback({host, 4747}));
    CHECK(is_open_address(host));
  }
  for (auto host :
       {"", "localhost", "127.0.0.1.example", "127.1"}) { // what these are, only resolving tells
    CAPTURE(host);
    CHECK_FALSE(is_loopback({host, 4747}));
    CHECK_FALSE(is_open_address(host));
  }
}
