// Sends and receives: every length that is near a limit, order, depth.
#include "rig.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

using namespace conformance;

namespace {

constexpr size_t kib = 1024;
constexpr size_t mib = 1024 * kib;

// One below, at and above each length at which some device changes its ways.
std::vector<size_t> interesting_lengths(const device_limits& limits) {
  std::vector<size_t> lengths{0, 1};
  for (size_t limit : {size_t{limits.max_inline}, 4 * kib, 8 * kib, 64 * kib, 256 * kib, mib})
    for (size_t length : {limit - 1, limit, limit + 1})
      if (limit > 0 && length <= limits.max_message)
        lengths.push_back(length);
  if (limits.max_message <= 16 * mib) {
    lengths.push_back(limits.max_message - 1);
    lengths.push_back(limits.max_message);
  }
  std::sort(lengths.begin(), lengths.end());
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  return lengths;
}

void check_sent(rig& r, side& from, queue_pair& out, memory_region& source, side& to,
                queue_pair& in, memory_region& target, size_t length, uint32_t seed) {
  CAPTURE(length);
  fill(source.bytes().first(length), seed);
  std::memset(target.data(), 0, std::min(target.size(), length + 64));
  REQUIRE(in.post_receive(seed, slice(target)));
  REQUIRE(out.post(send_request(seed + 1, slice(source, 0, length))));
  auto received = r.next(to);
  CHECK(received.id == seed);
  CHECK(received.pair == &in);
  CHECK(received.op == opcode::receive);
  CHECK(received.status == errc::none);
  CHECK(received.length == length);
  CHECK_FALSE(received.has_immediate);
  CHECK(filled(target.bytes().first(length), seed));
  CHECK(untouched(target.bytes().subspan(length, std::min<size_t>(64, target.size() - length))));
  auto sent = r.next(from);
  CHECK(sent.id == seed + 1);
  CHECK(sent.pair == &out);
  CHECK(sent.op == opcode::send);
  CHECK(sent.status == errc::none);
}

} // namespace

TEST_CASE("messages of every interesting length arrive whole, both ways") {
  rig r;
  auto lengths = interesting_lengths(r.client.opened->limits());
  auto& here = r.memory(r.client, lengths.back() + 1);
  auto& there = r.memory(r.server, lengths.back() + 1);
  uint32_t seed = 1;
  for (auto length : lengths) {
    check_sent(r, r.client, *r.client_pair, here, r.server, *r.server_pair, there, length, ++seed);
    check_sent(r, r.server, *r.server_pair, there, r.client, *r.client_pair, here, length, ++seed);
  }
}

TEST_CASE("messages between registered ordinary memory arrive whole") {
  rig r;
  std::vector<std::byte> source(3 * 64 * kib);
  std::vector<std::byte> target(source.size());
  auto from = r.client.opened->register_memory(source, rights::local);
  auto to = r.server.opened->register_memory(target, rights::local);
  REQUIRE(from);
  REQUIRE(to);
  fill(source, 5);
  REQUIRE(r.server_pair->post_receive(1, slice(**to)));
  REQUIRE(r.client_pair->post(send_request(2, slice(**from))));
  CHECK(r.next(r.server).length == source.size());
  CHECK(r.next(r.client).status == errc::none);
  CHECK(target == source);
  r.client_pair.reset();
  r.server_pair.reset();
}

TEST_CASE("an inlined message may be overwritten at once") {
  rig r;
  auto length = r.client.opened->limits().max_inline;
  auto& source = r.memory(r.client, length + 1);
  auto& target = r.memory(r.server, length + 1);
  fill(source.bytes().first(length), 3);
  auto work = send_request(1, slice(source, 0, length));
  work.inlined = true;
  bool waits = !reports_late(r.client.opened->limits());
  if (!waits)
    REQUIRE(r.server_pair->post_receive(2, slice(target)));
  REQUIRE(r.client_pair->post(work));
  fill(source.bytes(), 4);
  if (waits)
    REQUIRE(r.server_pair->post_receive(2, slice(target)));
  CHECK(r.next(r.server).length == length);
  CHECK(filled(target.bytes().first(length), 3));
  CHECK(r.next(r.client).status == errc::none);

  work.local.length = length + 1;
  auto refused = r.client_pair->post(work);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == errc::invalid_argument);
}

TEST_CASE("a batch of chained sends arrives in order") {
  rig r;
  constexpr size_t count = 32;
  auto& source = r.memory(r.client, count * 100);
  auto& target = r.memory(r.server, count * 100);
  std::vector<work_request> batch;
  for (uint32_t i = 0; i < count; ++i) {
    fill(source.bytes().subspan(i * 100, 100), i);
    batch.push_back(send_request(i, slice(source, i * 100, i + 1)));
    REQUIRE(r.server_pair->post_receive(i + 500, slice(target, i * 100, 100)));
  }
  REQUIRE(r.client_pair->post(batch));
  for (uint32_t i = 0; i < count; ++i) {
    auto received = r.next(r.server);
    CHECK(received.id == i + 500);
    CHECK(received.length == i + 1);
    CHECK(filled(target.bytes().subspan(i * 100, i + 1), i));
  }
  for (uint32_t i = 0; i < count; ++i)
    CHECK(r.next(r.client).id == i);
}

TEST_CASE("a message waits for a receive that is posted later") {
  rig r;
  // iWARP breaks the connection instead: it has no receiver-not-ready.
  if (reports_late(r.client.opened->limits()))
    return;
  auto& source = r.memory(r.client, 300 * kib);
  auto& target = r.memory(r.server, 300 * kib);
  for (size_t length : {size_t{0}, size_t{100}, 300 * kib}) {
    CAPTURE(length);
    fill(source.bytes().first(length), 9);
    REQUIRE(r.client_pair->post(send_request(1, slice(source, 0, length))));
    turn_for({&r.client, &r.server}, std::chrono::milliseconds{50});
    CHECK(r.server.done.empty());
    REQUIRE(r.server_pair->post_receive(2, slice(target)));
    auto received = r.next(r.server);
    CHECK(received.status == errc::none);
    CHECK(received.length == length);
    CHECK(filled(target.bytes().first(length), 9));
    CHECK(r.next(r.client).status == errc::none);
  }
}

TEST_CASE("a pair that waits for a receive holds up no other, and not its own reads") {
  rig r;
  if (reports_late(r.client.opened->limits()))
    return;
  auto second = r.connect();
  auto& source = r.memory(r.client, 4 * mib, every_right);
  auto& target = r.memory(r.server, 4 * mib, every_right);
  // Fills whatever lies between: nobody receives on the first pair.
  REQUIRE(r.client_pair->post(send_request(1, slice(source, 0, mib))));
  turn_for({&r.client, &r.server}, std::chrono::milliseconds{20});

  REQUIRE(second.server->post_receive(2, slice(target, 0, 100)));
  REQUIRE(second.client->post(send_request(3, slice(source, 0, 100))));
  CHECK(r.next(r.server).id == 2);
  CHECK(r.next(r.client).id == 3);

  // The server reads over the pair on which it does not receive.
  fill(source.bytes().subspan(2 * mib, mib), 8);
  REQUIRE(r.server_pair->post(read_request(4, slice(target, 2 * mib, mib), at(source, 2 * mib))));
  auto read = r.next(r.server);
  CHECK(read.id == 4);
  CHECK(read.status == errc::none);
  CHECK(filled(target.bytes().subspan(2 * mib, mib), 8));

  REQUIRE(r.server_pair->post_receive(5, slice(target, 0, mib)));
  CHECK(r.next(r.server).id == 5);
  CHECK(r.next(r.client).id == 1);
}

TEST_CASE("many messages both ways at once") {
  rig r;
  constexpr uint32_t depth = 32;
  constexpr uint32_t total = 500;
  constexpr size_t room = 20 * kib;
  struct direction {
    side* from;
    queue_pair* out;
    memory_region* source;
    queue_pair* in;
    memory_region* target;
    uint32_t sent = 0;
    uint32_t left = 0;
    uint32_t received = 0;
  };
  auto& a = r.memory(r.client, 2 * depth * room);
  auto& b = r.memory(r.server, 2 * depth * room);
  // The upper half of each is for what arrives.
  direction ways[] = {{&r.client, r.client_pair.get(), &a, r.server_pair.get(), &b},
                      {&r.server, r.server_pair.get(), &b, r.client_pair.get(), &a}};
  auto length_of = [](uint32_t index) { return size_t{index} * 37 % (room - 1); };
  auto post_receive = [&](direction& way, uint32_t index) {
    REQUIRE(way.in->post_receive(index, slice(*way.target, (depth + index % depth) * room, room)));
  };
  for (auto& way : ways)
    for (uint32_t i = 0; i < depth; ++i)
      post_receive(way, i);
  auto handle = [&](direction& receiving, direction& sending, completion done) {
    REQUIRE(done.status == errc::none);
    if (done.op != opcode::receive) {
      CHECK(done.id == sending.left++);
      return;
    }
    CHECK(done.id == receiving.received);
    CHECK(done.length == length_of(receiving.received));
    auto place = (depth + receiving.received % depth) * room;
    CHECK(filled(receiving.target->bytes().subspan(place, done.length), receiving.received));
    post_receive(receiving, receiving.received + depth);
    ++receiving.received;
  };
  bool all = r.until([&] {
    for (auto& way : ways) {
      // What was received is known here, so that no message ever lacks a receive.
      while (way.sent < total && way.sent - way.left < depth && way.sent - way.received < depth) {
        auto part = slice(*way.source, way.sent % depth * room, length_of(way.sent));
        fill(way.source->bytes().subspan(part.offset, part.length), way.sent);
        REQUIRE(way.out->post(send_request(way.sent++, part)));
      }
    }
    for (; !r.server.done.empty(); r.server.done.pop_front())
      handle(ways[0], ways[1], r.server.done.front());
    for (; !r.client.done.empty(); r.client.done.pop_front())
      handle(ways[1], ways[0], r.client.done.front());
    return ways[0].received == total && ways[1].received == total && ways[0].left == total &&
           ways[1].left == total;
  });
  CHECK(all);
}
