// Writes, reads, notifications and atomics.
#include "rig.hpp"

#include <cstring>

using namespace conformance;

namespace {

constexpr size_t kib = 1024;
constexpr size_t mib = 1024 * kib;

uint64_t word_at(const memory_region& region, size_t offset) {
  uint64_t word = 0;
  std::memcpy(&word, region.data() + offset, sizeof word);
  return word;
}

void set_word(memory_region& region, size_t offset, uint64_t word) {
  std::memcpy(region.data() + offset, &word, sizeof word);
}

work_request atomic_request(opcode op, uint64_t id, local_slice local, remote_address to,
                            uint64_t operand, uint64_t swap = 0) {
  auto work = read_request(id, local, to);
  work.op = op;
  work.operand = operand;
  work.swap = swap;
  return work;
}

void check_write_and_read(rig& r, memory_region& here, memory_region& there) {
  auto size = here.size() / 2;
  uint32_t seed = 10;
  for (size_t length :
       {size_t{0}, size_t{1}, size_t{8}, 4 * kib - 1, 8 * kib, 64 * kib + 1, size}) {
    CAPTURE(length);
    std::memset(there.data(), 0, there.size());
    fill(here.bytes().first(length), ++seed);
    REQUIRE(r.client_pair->post(write_request(seed, slice(here, 0, length), at(there, 3))));
    auto written = r.next(r.client);
    CHECK(written.id == seed);
    CHECK(written.op == opcode::write);
    CHECK(written.status == errc::none);
    REQUIRE(r.client_pair->post(read_request(seed + 1, slice(here, size, length), at(there, 3))));
    auto read = r.next(r.client);
    CHECK(read.id == seed + 1);
    CHECK(read.op == opcode::read);
    CHECK(read.status == errc::none);
    // The read was carried out after the write, so both are in place on both sides.
    CHECK(untouched(there.bytes().first(3)));
    CHECK(filled(there.bytes().subspan(3, length), seed));
    CHECK(untouched(there.bytes().subspan(3 + length, 16)));
    CHECK(filled(here.bytes().subspan(size, length), seed));
  }
  CHECK(r.server.done.empty());
}

} // namespace

TEST_CASE("writes and reads of allocated memory") {
  rig r;
  check_write_and_read(r, r.memory(r.client, 2 * mib), r.memory(r.server, 2 * mib, every_right));
}

TEST_CASE("writes and reads of registered ordinary memory") {
  rig r;
  std::vector<std::byte> source(2 * mib);
  std::vector<std::byte> target(2 * mib);
  auto here = r.client.opened->register_memory(source, rights::read_sink);
  auto there = r.server.opened->register_memory(target, every_right);
  REQUIRE(here);
  REQUIRE(there);
  check_write_and_read(r, **here, **there);
  r.client_pair.reset();
  r.server_pair.reset();
}

TEST_CASE("memory that is allocated after the connection was made can be reached") {
  rig r;
  auto& here = r.memory(r.client, 4 * kib);
  for (uint32_t i = 0; i < 8; ++i) {
    auto there = r.server.opened->allocate(64 * kib, every_right);
    REQUIRE(there);
    fill(here.bytes(), i);
    REQUIRE(r.client_pair->post(write_request(1, slice(here), at(**there, 60 * kib))));
    CHECK(r.next(r.client).status == errc::none);
    auto& back = r.memory(r.client, 4 * kib);
    REQUIRE(r.client_pair->post(read_request(2, slice(back), at(**there, 60 * kib))));
    CHECK(r.next(r.client).status == errc::none);
    CHECK(filled((*there)->bytes().subspan(60 * kib), i));
    CHECK(filled(back.bytes(), i));
  }
}

TEST_CASE("a write with notification carries data and its immediate") {
  rig r;
  auto& here = r.memory(r.client, 100 * kib);
  auto& there = r.memory(r.server, 100 * kib, every_right);
  uint32_t seed = 20;
  for (size_t length : {size_t{0}, size_t{1}, size_t{200}, 8 * kib, 100 * kib}) {
    CAPTURE(length);
    std::memset(there.data(), 0, there.size());
    fill(here.bytes().first(length), ++seed);
    REQUIRE(r.server_pair->post_receive(seed, {}));
    REQUIRE(r.client_pair->post(
        notify_request(seed + 1, slice(here, 0, length), at(there), 0xfedcba98U + seed)));
    auto received = r.next(r.server);
    CHECK(received.id == seed);
    CHECK(received.op == opcode::receive);
    CHECK(received.status == errc::none);
    CHECK(received.length == length);
    CHECK(received.has_immediate);
    CHECK(received.immediate == 0xfedcba98U + seed);
    CHECK(filled(there.bytes().first(length), seed));
    auto written = r.next(r.client);
    CHECK(written.id == seed + 1);
    CHECK(written.op == opcode::write_notify);
    CHECK(written.status == errc::none);
  }
  CHECK(r.client.done.empty());
}

TEST_CASE("sends, writes and notifications arrive in the order of posting") {
  rig r;
  auto& here = r.memory(r.client, 64 * kib);
  auto& there = r.memory(r.server, 64 * kib, every_right);
  auto& inbox = r.memory(r.server, 64 * kib);
  fill(here.bytes(), 1);
  for (uint64_t i = 0; i < 3; ++i)
    REQUIRE(r.server_pair->post_receive(100 + i, slice(inbox, i * 10 * kib, 10 * kib)));
  std::vector<work_request> batch{
      write_request(1, slice(here, 0, 40 * kib), at(there)),
      send_request(2, slice(here, 0, 9 * kib)),
      notify_request(3, slice(here, 0, 1000), at(there, 50 * kib), 33),
      write_request(4, slice(here, 0, 8), at(there, 60 * kib)),
      send_request(5, {}),
  };
  REQUIRE(r.client_pair->post(batch));
  auto first = r.next(r.server);
  CHECK(first.length == 9 * kib);
  CHECK(filled(there.bytes().first(40 * kib), 1));
  auto second = r.next(r.server);
  CHECK(second.has_immediate);
  CHECK(second.immediate == 33);
  CHECK(filled(there.bytes().subspan(50 * kib, 1000), 1));
  auto third = r.next(r.server);
  CHECK(third.length == 0);
  CHECK_FALSE(third.has_immediate);
  CHECK(filled(there.bytes().subspan(60 * kib, 8), 1));
  for (uint64_t id = 1; id <= 5; ++id)
    CHECK(r.next(r.client).id == id);
}

TEST_CASE("atomics give the old value and change the memory") {
  rig r;
  auto& here = r.memory(r.client, 4 * kib);
  auto& there = r.memory(r.server, 4 * kib, every_right);
  std::vector<uint64_t> plain(8, 0);
  auto ordinary =
      r.server.opened->register_memory(std::as_writable_bytes(std::span{plain}), every_right);
  REQUIRE(ordinary);
  if (!r.client.opened->limits().atomics) {
    auto refused =
        r.client_pair->post(atomic_request(opcode::fetch_add, 1, slice(here, 0, 8), at(there), 1));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code() == errc::unsupported);
    return;
  }
  for (auto target : {static_cast<memory_region*>(&there), ordinary->get()}) {
    set_word(*target, 16, 40);
    auto old = slice(here, 8, 8);
    auto add = atomic_request(opcode::fetch_add, 1, old, at(*target, 16), 2);
    REQUIRE(r.client_pair->post(add));
    auto added = r.next(r.client);
    CHECK(added.status == errc::none);
    CHECK(added.op == opcode::fetch_add);
    CHECK(word_at(here, 8) == 40);
    CHECK(word_at(*target, 16) == 42);

    auto swap = atomic_request(opcode::compare_swap, 2, old, at(*target, 16), 42, 7);
    REQUIRE(r.client_pair->post(swap));
    CHECK(r.next(r.client).op == opcode::compare_swap);
    CHECK(word_at(here, 8) == 42);
    CHECK(word_at(*target, 16) == 7);

    // Expects 42, finds 7: changes nothing.
    swap.id = 3;
    REQUIRE(r.client_pair->post(swap));
    CHECK(r.next(r.client).status == errc::none);
    CHECK(word_at(here, 8) == 7);
    CHECK(word_at(*target, 16) == 7);
    CHECK(word_at(*target, 8) == 0);
    CHECK(word_at(*target, 24) == 0);
  }
  r.client_pair.reset();
  r.server_pair.reset();
}

TEST_CASE("more reads at once than the device carries at once") {
  rig r;
  constexpr uint64_t count = 48;
  auto& here = r.memory(r.client, count * kib);
  auto& there = r.memory(r.server, count * kib, every_right);
  fill(there.bytes(), 6);
  std::vector<work_request> batch;
  for (uint64_t i = 0; i < count; ++i)
    batch.push_back(read_request(i, slice(here, i * kib, kib), at(there, i * kib)));
  REQUIRE(r.client_pair->post(batch));
  for (uint64_t i = 0; i < count; ++i) {
    auto done = r.next(r.client);
    CHECK(done.id == i);
    CHECK(done.status == errc::none);
  }
  CHECK(filled(here.bytes(), 6));
}
