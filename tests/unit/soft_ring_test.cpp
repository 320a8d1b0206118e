#include "soft/ring.hpp"

#include <doctest/doctest.h>
#include <memory>
#include <thread>
#include <vector>

using namespace troupe::transport;
using namespace troupe::transport::soft;

namespace {

struct ring_under_test {
  explicit ring_under_test(size_t capacity) : storage(capacity) {}

  std::unique_ptr<ring_positions> positions = std::make_unique<ring_positions>();
  std::vector<std::byte> storage;
  ring_writer writer{*positions, storage};
  ring_reader reader{*positions, storage};
};

std::vector<std::byte> numbered(size_t count, uint8_t from) {
  std::vector<std::byte> bytes(count);
  for (auto& each : bytes)
    each = static_cast<std::byte>(from++);
  return bytes;
}

} // namespace

TEST_CASE("a ring gives what was published, in order, across its end") {
  ring_under_test ring{64};
  uint8_t next = 0;
  for (int round = 0; round < 50; ++round) {
    auto bytes = numbered(27, next);
    CHECK(ring.writer.write(bytes) == 27);
    std::vector<std::byte> got(27);
    CHECK(ring.reader.read(got) == 0);
    CHECK(ring.writer.publish());
    CHECK_FALSE(ring.writer.publish());
    CHECK(ring.reader.read(got) == 27);
    CHECK(got == bytes);
    CHECK(ring.reader.release());
    CHECK_FALSE(ring.reader.release());
    next = static_cast<uint8_t>(next + 27);
  }
}

TEST_CASE("a full ring takes nothing until the reader releases") {
  ring_under_test ring{64};
  CHECK(ring.writer.write(numbered(100, 0)) == 64);
  CHECK(ring.writer.room() == 0);
  ring.writer.publish();
  std::vector<std::byte> got(10);
  CHECK(ring.reader.read(got) == 10);
  CHECK(ring.reader.unreleased() == 10);
  CHECK(ring.writer.write(numbered(1, 0)) == 0);
  ring.reader.release();
  CHECK(ring.writer.room() == 10);
  CHECK(ring.writer.write(numbered(100, 64)) == 10);
  ring.writer.publish();
  got.resize(100);
  CHECK(ring.reader.read(got) == 64);
  got.resize(64);
  CHECK(got == numbered(64, 10));
}

TEST_CASE("nothing is read or written through positions that cannot be") {
  ring_under_test ring{64};
  std::vector<std::byte> got(64);
  SUBCASE("the writer's") {
    for (uint64_t wrong : {uint64_t{65}, ~uint64_t{0}}) {
      ring.positions->written = wrong;
      CHECK(ring.reader.read(got) == 0);
      CHECK(ring.reader.available() == 0);
      CHECK(ring.reader.broken());
    }
  }
  SUBCASE("the reader's") {
    for (uint64_t wrong : {uint64_t{1}, ~uint64_t{0} - 100}) {
      ring.positions->consumed = wrong;
      CHECK(ring.writer.room() == 0);
    }
    CHECK(ring.writer.write(numbered(65, 0)) == 0);
  }
}

TEST_CASE("two threads pass a stream of bytes") {
  ring_under_test ring{256};
  constexpr uint64_t total = 2'000'000;
  std::thread writing{[&] {
    uint64_t sent = 0;
    while (sent < total) {
      auto bytes = numbered(1 + sent % 100, static_cast<uint8_t>(sent));
      bytes.resize(std::min<uint64_t>(bytes.size(), total - sent));
      auto count = ring.writer.write(bytes);
      ring.writer.publish();
      sent += count;
      if (count == 0)
        std::this_thread::yield();
    }
  }};
  uint64_t received = 0;
  uint64_t wrong = 0;
  std::vector<std::byte> part(77);
  while (received < total) {
    auto count = ring.reader.read(part);
    for (size_t i = 0; i < count; ++i)
      wrong += part[i] != static_cast<std::byte>(received + i);
    received += count;
    ring.reader.release();
    if (count == 0)
      std::this_thread::yield();
  }
  writing.join();
  CHECK(wrong == 0);
  CHECK(ring.reader.read(part) == 0);
}
