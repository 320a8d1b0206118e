// Hosts that can no longer be reached, or never could: network namespaces whose link is taken down.
// Needs the right to make them.
#include "peer.hpp"
#include "unreachable.hpp"

#include <doctest/doctest.h>
#include <filesystem>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace channel_test;

namespace {

int run(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (auto& word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t id = -1;
  int how = 0;
  if (posix_spawnp(&id, argv[0], nullptr, nullptr, argv.data(), environ) != 0 ||
      waitpid(id, &how, 0) != id || !WIFEXITED(how))
    return -1;
  return WEXITSTATUS(how);
}

// A second process on a host of its own, with a link to it. The link goes when the process does.
class far_peer {
public:
  far_peer(int number, const std::string& role, const std::vector<uint64_t>& arguments)
      : process(in_role(role, arguments, "", {"/usr/bin/unshare", "--net", "--"})),
        network_("10.231." + std::to_string((getpid() + number) % 250) + "."),
        link_("trp" + std::to_string(getpid() % 100'000) + "." + std::to_string(number)) {
    port_ = port_of(process); // it is there by now
    auto inside = std::to_string(process.id());
    REQUIRE(run({"ip", "link", "add", link_, "type", "veth", "peer", "name", "far", "netns",
                 inside}) == 0);
    REQUIRE(run({"ip", "addr", "add", network_ + "1/24", "dev", link_}) == 0);
    REQUIRE(run({"ip", "link", "set", link_, "up"}) == 0);
    REQUIRE(there({"addr", "add", network_ + "2/24", "dev", "far"}) == 0);
    REQUIRE(there({"link", "set", "far", "up"}) == 0);
  }

  endpoint address() const { return {network_ + "2", port_}; }

  void cut() { REQUIRE(there({"link", "set", "far", "down"}) == 0); }

  support::child_process process;
  std::unique_ptr<channel> stream;

private:
  int there(const std::vector<std::string>& words) {
    std::vector<std::string> all{"nsenter", "--net", "--target", std::to_string(process.id()),
                                 "ip"};
    all.insert(all.end(), words.begin(), words.end());
    return run(all);
  }

  std::string network_;
  std::string link_;
  uint16_t port_ = 0;
};

} // namespace

namespace channel_test {

std::string why_no_namespaces() {
  for (auto program : {"/usr/bin/unshare", "/usr/bin/nsenter"})
    if (!std::filesystem::exists(program))
      return std::string{"there is no "} + program;
  if (run({"unshare", "--net", "--", "ip", "link", "add", "trial", "type", "veth", "peer", "name",
           "other"}) != 0)
    return "no network namespaces with links can be made here (as root, `unshare --net ip link add "
           "trial type veth` says why)";
  return {};
}

} // namespace channel_test

TEST_SUITE_BEGIN("unreachable");

TEST_CASE("a host that becomes unreachable in the middle of a segment ends both sides") {
  node here;
  peer third{here, "receive", {64 * kib}};
  far_peer receiver{0, "receive", {64 * kib, mib}};
  far_peer sender{1, "send", {64 * mib, 64 * mib}};
  far_peer idle{2, "receive", {64 * kib}};
  checking_reader readers[3] = {checking_reader{1}, checking_reader{64 * kib}, checking_reader{1}};
  far_peer* others[3] = {&receiver, &sender, &idle};
  auto ready = here.ready;
  for (int i = 0; i < 3; ++i)
    others[i]->stream = here.connect(others[i]->address());
  REQUIRE(turn_until({&here}, [&] { return here.ready == ready + 3; }));
  readers[1].limit = mib;
  for (int i = 0; i < 3; ++i)
    others[i]->stream->read_with(readers[i]);
  auto bytes = segment(0, 64 * mib);
  receiver.stream->send(bytes);
  REQUIRE(turn_until({&here}, [&] {
    return receiver.process.out().find("paused") != std::string::npos && readers[1].bytes == mib;
  }));
  CHECK(receiver.process.line() == "paused");
  for (auto each : others)
    each->cut();
  // More to say, and more to ask for, on links that are dead.
  auto more = segment(64 * mib, 100);
  receiver.stream->send(more);
  readers[1].limit = UINT64_MAX;
  sender.stream->resume();
  auto over = [&] { return readers[0].ended && readers[1].ended && readers[2].ended; };
  CHECK((turn_until({&here}, over) || turn_until({&here}, over))); // it is noticed in 40 s or so
  for (auto& reader : readers) {
    CHECK(reader.correct);
    CHECK(reader.reason.code() == errc::unreachable);
  }
  for (auto each : others) {
    CHECK(each->process.line().starts_with("bytes "));
    CHECK(each->process.wait().code == 0);
  }
  check_goes_on(here, third);
}

TEST_CASE("connecting to a host that does not answer fails when its time is over") {
  node here;
  far_peer other{3, "receive", {64 * kib}};
  other.cut();
  other.stream = here.connect(other.address(), std::chrono::seconds{2});
  CHECK(turn_until({&here}, [&] { return bool{here.failure}; }));
  CHECK((here.failure.code() == errc::timeout || here.failure.code() == errc::unreachable));
  CHECK(here.failure.text().find(other.address().host) != std::string::npos);
}
