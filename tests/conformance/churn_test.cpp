// Connections that come and go quickly, and what must not be left behind.
#include "rig.hpp"
#include "support/child_process.hpp"

#include <algorithm>
#include <cstdio>
#include <dirent.h>
#include <fstream>
#include <malloc.h>
#include <poll.h>
#include <string>

using namespace conformance;
using kind = connection_event::kind;

namespace {

bool emulated() {
  return !under_test().device.starts_with("soft");
}

size_t open_descriptors() {
  size_t count = 0;
  auto directory = opendir("/proc/self/fd");
  REQUIRE(directory);
  while (readdir(directory))
    ++count;
  closedir(directory);
  return count;
}

size_t mappings() {
  std::ifstream file{"/proc/self/maps"};
  size_t count = 0;
  for (std::string line; std::getline(file, line);)
    ++count;
  return count;
}

size_t heap_bytes() {
  auto info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

// What the kernel holds for an adapter: "pd 3 cq 2 qp 0 cm_id 1 mr 0 ...". Empty for soft devices.
std::string adapter_resources() {
  if (!under_test().device.starts_with("verbs:"))
    return {};
  auto pipe = popen(("rdma resource show " + under_test().device.substr(6)).c_str(), "r");
  REQUIRE(pipe);
  std::string text(1000, '\0');
  text.resize(fread(text.data(), 1, text.size(), pipe));
  REQUIRE_MESSAGE(pclose(pipe) == 0, "the program rdma of iproute2 is needed");
  return text;
}

queue_pair_config at(side& where) {
  return {where.completions.get(), 16, 16};
}

// One message each way.
void check_works(rig& r, rig::link& link) {
  REQUIRE(link.server->post_receive(1, {}));
  REQUIRE(link.client->post_receive(2, {}));
  REQUIRE(link.client->post(send_request(3, {})));
  // The side that accepted speaks second.
  auto heard = [&](side& where, uint64_t id) {
    auto found = std::find_if(where.done.begin(), where.done.end(), [&](const completion& done) {
      return done.id == id && done.status == errc::none;
    });
    return found != where.done.end();
  };
  REQUIRE(r.until([&] { return heard(r.server, 1); }));
  REQUIRE(link.server->post(send_request(4, {})));
  REQUIRE(r.until([&] { return heard(r.client, 2) && heard(r.client, 3) && heard(r.server, 4); }));
  r.client.done.clear();
  r.server.done.clear();
}

} // namespace

TEST_CASE("a connection that was closed is followed by the next at once") {
  rig r{{.connect = false}};
  auto current = r.connect();
  for (int round = 0; round < 16; ++round) {
    CAPTURE(round);
    auto& first = round % 2 == 0 ? current.client : current.server;
    auto& second = round % 2 == 0 ? current.server : current.client;
    // With its events unread, in an orderly way or not, the other end living on for a while or not.
    if (round % 4 < 2)
      first->disconnect();
    first.reset();
    auto kept = round % 8 < 4 ? std::move(second) : nullptr;
    second.reset();
    current = r.connect();
    check_works(r, current);
    if (kept) {
      auto& where = round % 2 == 0 ? r.server : r.client;
      CHECK(r.next_event(where, kind::disconnected).pair == kept.get());
    }
  }
}

TEST_CASE("two devices that connect to each other at the same moment get both connections") {
  rig r{{.connect = false}};
  auto other = r.client.opened->listen({under_test().address, 0});
  REQUIRE(other);
  endpoint to_client{under_test().address, (*other)->local().port};
  for (int round = 0; round < 4; ++round) {
    CAPTURE(round);
    auto there = r.client.opened->connect(r.listening(), at(r.client), {}, patience);
    auto back = r.server.opened->connect(to_client, at(r.server), {}, patience);
    REQUIRE(there);
    REQUIRE(back);
    auto at_server = r.next_event(r.server, kind::requested);
    auto at_client = r.next_event(r.client, kind::requested);
    CHECK(at_server.source == r.listening_at.get());
    CHECK(at_client.source == other->get());
    auto taken_there = at_server.request->accept(at(r.server), {});
    auto taken_back = at_client.request->accept(at(r.client), {});
    REQUIRE(taken_there);
    REQUIRE(taken_back);
    for (int i = 0; i < 2; ++i) {
      auto at_this = r.next_event(r.client, kind::established).pair;
      CHECK((at_this == there->get() || at_this == taken_back->get()));
      auto at_that = r.next_event(r.server, kind::established).pair;
      CHECK((at_that == back->get() || at_that == taken_there->get()));
    }
    rig::link first{std::move(*there), std::move(*taken_there)};
    check_works(r, first);
    REQUIRE((*taken_back)->post_receive(5, {}));
    REQUIRE((*back)->post(send_request(6, {})));
    CHECK(r.next(r.client).id == 5);
    CHECK(r.next(r.server).id == 6);
  }
}

TEST_CASE("many connections come and go without leaving anything behind") {
  rig r{{.connect = false}};
  // An emulated adapter takes long for each.
  const int cycles = emulated() ? 100 : 1000;
  auto cycle = [&](bool orderly) {
    auto allocated = r.server.opened->allocate(4096, every_right);
    REQUIRE(allocated);
    std::vector<std::byte> ordinary(4096);
    auto registered = r.client.opened->register_memory(ordinary, every_right);
    REQUIRE(registered);
    auto made = r.connect();
    REQUIRE(made.server->post_receive(1, slice(**allocated)));
    REQUIRE(made.client->post(send_request(2, slice(**registered))));
    CHECK(r.next(r.server).id == 1);
    CHECK(r.next(r.client).id == 2);
    if (orderly) {
      made.client->disconnect();
      r.next_event(r.server, kind::disconnected);
      r.next_event(r.client, kind::disconnected);
    }
  };
  // What is kept for reuse is there after these.
  for (int i = 0; i < 20; ++i)
    cycle(i % 2 == 0);
  turn_for({&r.client, &r.server}, std::chrono::milliseconds{50});
  auto descriptors = open_descriptors();
  auto mapped = mappings();
  auto heap = heap_bytes();
  auto resources = adapter_resources();
  for (int i = 0; i < cycles; ++i)
    cycle(i % 2 == 0);
  CHECK(r.until([&] { return open_descriptors() <= descriptors; }));
  CHECK(r.until([&] { return adapter_resources() == resources; }));
  // A few more may come from the allocator's own growth; a leak would be one a cycle.
  CHECK(mappings() <= mapped + 10);
  CHECK(heap_bytes() <= heap + static_cast<size_t>(cycles) * 32);
}

TEST_CASE("a queue that has announced much can be destroyed at once") {
  rig r;
  // More than are acknowledged to an adapter in one go, and not a multiple of that.
  for (uint64_t round = 0; round < 150; ++round) {
    REQUIRE(r.server_pair->post_receive(round, {}));
    r.server.completions->acknowledge();
    r.server.completions->arm();
    r.server.turn();
    r.server.done.clear();
    REQUIRE(r.client_pair->post(send_request(round, {})));
    auto deadline = std::chrono::steady_clock::now() + patience;
    pollfd announced{r.server.completions->fd(), POLLIN, 0};
    while (::poll(&announced, 1, 1) == 0) {
      REQUIRE(std::chrono::steady_clock::now() < deadline);
      r.client.turn();
    }
    r.client.turn();
    r.client.done.clear();
  }
  // The last announcement is neither consumed nor is what it announces taken.
  auto begin = std::chrono::steady_clock::now();
  r.server_pair.reset();
  r.client_pair.reset();
  r.server.completions.reset();
  r.client.completions.reset();
  CHECK(std::chrono::steady_clock::now() - begin < patience);
}

TEST_CASE("a process that was killed is followed by another at the same address") {
  uint16_t port = 0;
  side here;
  auto memory = here.opened->allocate(64 * 1024, rights::local);
  REQUIRE(memory);
  for (int round = 0; round < 3; ++round) {
    CAPTURE(round);
    support::launch how;
    how.argv = {support::this_executable(), "--device=" + under_test().device, "--role=sink-at",
                "--argument=" + std::to_string(port)};
    how.captures_errors = false;
    support::child_process other{how};
    auto text = other.line();
    REQUIRE(text.starts_with("port "));
    auto now = static_cast<uint16_t>(std::stoi(text.substr(5)));
    CHECK((port == 0 || now == port));
    port = now;
    auto pair = here.opened->connect({under_test().address, port}, at(here), {}, patience);
    REQUIRE(pair);
    std::optional<connection_event> event;
    auto came = [&](kind what) {
      return turn_until({&here}, [&] { return (event = here.take_event(what)).has_value(); });
    };
    REQUIRE(came(kind::established));
    REQUIRE((*pair)->post(send_request(1, slice(**memory, 0, 1000))));
    REQUIRE(turn_until({&here}, [&] { return !here.done.empty(); }));
    CHECK(here.done.front().status == errc::none);
    here.done.clear();
    other.kill();
    CHECK(came(kind::disconnected));
  }
}
