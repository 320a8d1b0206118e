// Completion queues: depth, selective signalling, sleeping on the descriptor.
#include "rig.hpp"

#include <poll.h>
#include <thread>

using namespace conformance;
using kind = connection_event::kind;

namespace {

bool readable(int fd, std::chrono::milliseconds limit) {
  pollfd waiting{fd, POLLIN, 0};
  return ::poll(&waiting, 1, static_cast<int>(limit.count())) == 1;
}

// Sleeps as an event loop does until `where` has a completion: arm, poll once more, sleep,
// acknowledge. `other`, when not null, goes on polling meanwhile, as its own loop would.
void sleep_for_completion(side& where, side* other) {
  auto deadline = std::chrono::steady_clock::now() + patience;
  while (where.done.empty()) {
    where.completions->arm();
    if (where.turn())
      continue;
    bool awake = false;
    while (!awake) {
      REQUIRE_MESSAGE(std::chrono::steady_clock::now() < deadline, "slept through a completion");
      if (other)
        other->turn();
      awake = readable(where.completions->fd(), std::chrono::milliseconds{other ? 1 : 1000});
    }
    where.completions->acknowledge();
    where.turn();
  }
}

} // namespace

TEST_CASE("only signaled work reports success") {
  rig r;
  std::vector<work_request> batch;
  for (uint64_t id = 0; id < 16; ++id) {
    REQUIRE(r.server_pair->post_receive(id, {}));
    batch.push_back(send_request(id, {}));
    batch.back().signaled = id % 8 == 7;
  }
  REQUIRE(r.client_pair->post(batch));
  CHECK(r.next(r.client).id == 7);
  CHECK(r.next(r.client).id == 15);
  CHECK(r.until([&] { return r.server.done.size() == 16; }));
  CHECK(r.client.done.empty());
}

TEST_CASE("unsignaled work frees its places once a later signaled one is done") {
  rig r{{.send_depth = 16}};
  for (uint64_t round = 0; round < 40; ++round) {
    std::vector<work_request> batch;
    for (uint64_t id = 0; id < 16; ++id) {
      REQUIRE(r.server_pair->post_receive(id, {}));
      batch.push_back(send_request(round * 16 + id, {}));
      batch.back().signaled = id == 15;
    }
    REQUIRE(r.client_pair->post(batch));
    CHECK(r.next(r.client).id == round * 16 + 15);
    CHECK(r.until([&] { return r.server.done.size() == 16; }));
    r.server.done.clear();
  }
}

TEST_CASE("a full queue takes nothing more until a completion frees a place") {
  rig r{{.send_depth = 8, .receive_depth = 8}};
  if (reports_late(r.client.opened->limits()))
    return; // iWARP: a send that no receive waits for would break the connection
  status refused;
  uint64_t posted = 0;
  // A device may give more room than was asked for.
  while ((refused = r.client_pair->post(send_request(posted, {}))))
    REQUIRE(++posted < 10000);
  CHECK(refused.error().code() == errc::no_resources);
  CHECK(posted >= 8);
  uint64_t receives = 0;
  while ((refused = r.server_pair->post_receive(receives, {})))
    REQUIRE(++receives < 10000);
  CHECK(refused.error().code() == errc::no_resources);
  CHECK(receives >= 8);
  CHECK(r.next(r.client).id == 0);
  CHECK(r.next(r.server).id == 0);
  CHECK(r.client_pair->post(send_request(posted, {})));
  CHECK(r.server_pair->post_receive(receives, {}));
}

TEST_CASE("a batch that does not fit whole is refused whole") {
  rig r{{.send_depth = 8}};
  std::vector<work_request> batch(10000, send_request(1, {}));
  auto refused = r.client_pair->post(batch);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == errc::no_resources);
  turn_for({&r.client, &r.server}, std::chrono::milliseconds{20});
  CHECK(r.client.done.empty());
}

TEST_CASE("a completion wakes whoever sleeps on the descriptor") {
  rig r;
  auto& here = r.memory(r.client, 64 * 1024);
  auto& there = r.memory(r.server, 64 * 1024);
  for (uint64_t round = 0; round < 20; ++round) {
    REQUIRE(r.server_pair->post_receive(round, slice(there)));
    turn_for({&r.client, &r.server}, std::chrono::milliseconds{1});
    r.server.completions->acknowledge();
    r.server.completions->arm();
    REQUIRE_FALSE(r.server.turn());
    CHECK_FALSE(readable(r.server.completions->fd(), std::chrono::milliseconds{0}));
    REQUIRE(r.client_pair->post(send_request(round, slice(here, 0, 100 + round))));
    sleep_for_completion(r.server, &r.client);
    CHECK(r.server.done.front().id == round);
    CHECK(r.server.done.front().length == 100 + round);
    r.server.done.clear();
    sleep_for_completion(r.client, &r.server);
    r.client.done.clear();
  }
}

TEST_CASE("a completion that came before arming is found by polling once more") {
  rig r;
  REQUIRE(r.server_pair->post_receive(1, {}));
  REQUIRE(r.client_pair->post(send_request(2, {})));
  r.until([&] { return !r.client.done.empty() && !r.server.done.empty(); });
  r.server.done.clear();
  REQUIRE(r.server_pair->post_receive(1, {}));
  turn_for({&r.client, &r.server}, std::chrono::milliseconds{5});
  r.client.done.clear();
  REQUIRE(r.client_pair->post(send_request(3, {})));
  REQUIRE(turn_until({&r.client}, [&] { return !r.client.done.empty(); }));
  sleep_for_completion(r.server, nullptr);
  CHECK(r.server.done.front().id == 1);
}

TEST_CASE("acknowledging without an announcement does no harm") {
  rig r;
  r.client.completions->acknowledge();
  r.server.completions->acknowledge();
  r.server.completions->arm();
  r.server.completions->acknowledge();
  REQUIRE(r.server_pair->post_receive(1, {}));
  REQUIRE(r.client_pair->post(send_request(2, {})));
  CHECK(r.next(r.server).id == 1);
  CHECK(r.next(r.client).id == 2);
}

TEST_CASE("two loops on two threads, each sleeping on its descriptors") {
  rig r;
  constexpr int rounds = 300;
  auto& here = r.memory(r.client, 4096);
  auto& there = r.memory(r.server, 4096);
  REQUIRE(r.server_pair->post_receive(0, slice(there, 0, 100)));
  REQUIRE(r.client_pair->post_receive(0, slice(here, 0, 100)));
  // Sends one message and waits for the answer to it, or the other way round.
  auto play = [](side& where, queue_pair& pair, memory_region& memory, bool starts) {
    auto send = [&](int round) {
      REQUIRE(pair.post(send_request(1000 + static_cast<uint64_t>(round),
                                     slice(memory, 200, static_cast<size_t>(round) % 100))));
    };
    if (starts)
      send(0);
    for (int received = 0, sent = starts ? 1 : 0; received < rounds || sent > 0;) {
      sleep_for_completion(where, nullptr);
      for (; !where.done.empty(); where.done.pop_front()) {
        const auto& done = where.done.front();
        REQUIRE(done.status == errc::none);
        if (done.op != opcode::receive) {
          --sent;
          continue;
        }
        CHECK(done.length == static_cast<size_t>(received) % 100);
        ++received;
        REQUIRE(pair.post_receive(0, slice(memory, 0, 100)));
        int next = starts ? received : received - 1;
        if (next < rounds) {
          send(next);
          ++sent;
        }
      }
    }
  };
  std::thread other{[&] { play(r.server, *r.server_pair, there, false); }};
  play(r.client, *r.client_pair, here, true);
  other.join();
}

TEST_CASE("destroying a pair with work outstanding leaves no trace of it") {
  rig r;
  auto keep = r.connect();
  auto& here = r.memory(r.client, 1 << 20, every_right);
  auto& there = r.memory(r.server, 1 << 20, every_right);
  for (uint64_t id = 0; id < 4; ++id) {
    REQUIRE(r.client_pair->post_receive(id, slice(here, 0, 100)));
    REQUIRE(r.client_pair->post(write_request(id, slice(here), at(there))));
    REQUIRE(r.client_pair->post(read_request(id, slice(here), at(there))));
  }
  auto gone = r.client_pair.get();
  r.client_pair.reset();
  REQUIRE(keep.server->post_receive(77, {}));
  REQUIRE(keep.client->post(send_request(78, {})));
  CHECK(r.until([&] { return !r.client.done.empty() && !r.server.done.empty(); }));
  r.next_event(r.server, kind::disconnected);
  for (const auto& done : r.client.done)
    CHECK(done.pair != gone);
  for (const auto& event : r.client.events)
    CHECK(event.pair != gone);
}

TEST_CASE("events that wait for a destroyed pair or listener are dropped") {
  rig r;
  // Waits at the server while the pair goes.
  r.client_pair->disconnect();
  turn_for({&r.client}, std::chrono::milliseconds{20});
  r.server_pair.reset();
  turn_for({&r.client, &r.server}, std::chrono::milliseconds{50});
  CHECK(r.server.events.empty());

  auto pair =
      r.client.opened->connect(r.listening(), {r.client.completions.get(), 8, 8}, {}, patience);
  REQUIRE(pair);
  turn_for({&r.client}, std::chrono::milliseconds{20});
  r.listening_at.reset();
  turn_for({&r.client, &r.server}, std::chrono::milliseconds{50});
  CHECK(r.server.events.empty());
  CHECK(r.next_event(r.client, kind::failed).pair == pair->get());
}
