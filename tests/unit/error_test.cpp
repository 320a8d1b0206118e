#include <cerrno>
#include <doctest/doctest.h>
#include <set>
#include <troupe/transport/error.hpp>

using namespace troupe;

TEST_CASE("every code has a name of its own") {
  std::set<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(errc::system); ++code)
    names.insert(to_string(static_cast<errc>(code)));
  CHECK(names.size() == static_cast<size_t>(errc::system) + 1);
}

TEST_CASE("a system error names what failed and why") {
  auto e = system_error("bind to 127.0.0.1:80", EADDRINUSE);
  CHECK(e.code() == errc::address_in_use);
  CHECK(e.text() == "bind to 127.0.0.1:80: Address already in use");
  CHECK(system_error("connect", ECONNREFUSED).code() == errc::refused);
  CHECK(system_error("mmap", EIO).code() == errc::system);
}
