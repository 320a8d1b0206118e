#include <doctest/doctest.h>
#include <troupe/transport/endpoint.hpp>

using troupe::errc;
using troupe::transport::endpoint;
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
