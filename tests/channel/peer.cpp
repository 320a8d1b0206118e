#include "peer.hpp"

#include <algorithm>
#include <doctest/doctest.h>

namespace channel_test {

support::launch in_role(const std::string& role, const std::vector<uint64_t>& arguments,
                        const std::string& address, const std::vector<std::string>& before) {
  support::launch how;
  how.captures_errors = false;
  how.argv = before;
  how.argv.push_back(support::this_executable());
  how.argv.push_back("--device=" + under_test().device);
  how.argv.push_back("--address=" + address);
  how.argv.push_back("--role");
  how.argv.push_back(role);
  for (auto each : arguments)
    how.argv.push_back(std::to_string(each));
  return how;
}

uint16_t port_of(support::child_process& process) {
  auto text = process.line();
  REQUIRE_MESSAGE(text.starts_with("port "), text);
  return static_cast<uint16_t>(std::stoul(text.substr(5)));
}

peer::peer(node& here, const std::string& role, const std::vector<uint64_t>& arguments)
    : process_(in_role(role, arguments, under_test().address)) {
  auto before = here.ready;
  stream = here.connect({under_test().address, port_of(process_)});
  REQUIRE(turn_until({&here}, [&] { return here.ready > before; }));
}

void send_mixed(channel& to, uint64_t bytes) {
  uint64_t sent = 0;
  for (size_t round = 0; sent < bytes; ++round) {
    auto next = segment(sent, std::min<uint64_t>(bytes - sent, round % 4 == 0 ? mib : 10 * kib));
    sent += next.size();
    to.send(next);
  }
}

void check_has_read(node& here, peer& other, uint64_t bytes) {
  bool closed = false;
  other.stream->close([&] { closed = true; });
  CHECK(turn_until({&here}, [&] { return closed; }));
  CHECK(other.process().line() == "bytes " + std::to_string(bytes) + " right");
  CHECK(other.process().wait().code == 0);
}

void check_goes_on(node& here, peer& other) {
  send_mixed(*other.stream, 4 * mib);
  check_has_read(here, other, 4 * mib);
}

} // namespace channel_test
