#include "soft/doorbell.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <set>
#include <thread>

using namespace troupe::transport;
using namespace troupe::transport::soft;

namespace {

remote_doorbell remote_of(doorbell& bell, uint32_t bit) {
  descriptor file{fcntl(bell.file(), F_DUPFD_CLOEXEC, 0)};
  descriptor event{fcntl(bell.event(), F_DUPFD_CLOEXEC, 0)};
  auto opened = remote_doorbell::open(file, std::move(event), bit);
  REQUIRE(opened);
  return std::move(*opened);
}

bool announced(doorbell& bell) {
  pollfd waiting{bell.event(), POLLIN, 0};
  return ::poll(&waiting, 1, 0) == 1;
}

} // namespace

TEST_CASE("bits that were rung are collected once") {
  auto bell = doorbell::make();
  REQUIRE(bell);
  std::vector<uint32_t> bits;
  (*bell)->collect(bits);
  CHECK(bits.empty());
  for (uint32_t bit : {0U, 63U, 64U, 4095U}) {
    auto remote = remote_of(**bell, bit);
    remote.ring();
    remote.ring();
  }
  (*bell)->collect(bits);
  std::sort(bits.begin(), bits.end());
  CHECK(bits == std::vector<uint32_t>{0, 63, 64, 4095});
  bits.clear();
  (*bell)->collect(bits);
  CHECK(bits.empty());
}

TEST_CASE("ringing announces only to who has armed, and once") {
  auto bell = doorbell::make();
  REQUIRE(bell);
  auto remote = remote_of(**bell, 5);
  remote.ring();
  CHECK_FALSE(announced(**bell));
  (*bell)->arm();
  remote.ring();
  CHECK(announced(**bell));
  (*bell)->acknowledge();
  CHECK_FALSE(announced(**bell));
  remote.ring();
  CHECK_FALSE(announced(**bell));
}

TEST_CASE("bits are handed out once, and again when given back") {
  auto bell = doorbell::make();
  REQUIRE(bell);
  std::set<uint32_t> taken;
  while (auto bit = (*bell)->take_bit())
    CHECK(taken.insert(*bit).second);
  CHECK(taken.size() == doorbell_bits);
  (*bell)->give_back(77);
  CHECK((*bell)->take_bit() == 77U);
  CHECK_FALSE((*bell)->take_bit());
}

TEST_CASE("a bit that the page does not have is refused") {
  auto bell = doorbell::make();
  REQUIRE(bell);
  descriptor file{fcntl((*bell)->file(), F_DUPFD_CLOEXEC, 0)};
  CHECK_FALSE(remote_doorbell::open(file, descriptor{}, doorbell_bits));
  descriptor small{memfd_create("too small and not sealed", MFD_CLOEXEC)};
  CHECK_FALSE(remote_doorbell::open(small, descriptor{}, 1));
}

// The sleeper sleeps for real: a lost wake-up shows as the deadline of its poll.
TEST_CASE("no ring is lost to a sleeper") {
  auto bell = doorbell::make();
  REQUIRE(bell);
  constexpr int rounds = 5000;
  std::atomic<int> published{0};
  std::atomic<int> seen{0};
  std::thread ringing{[&] {
    auto remote = remote_of(**bell, 9);
    for (int i = 1; i <= rounds; ++i) {
      published.store(i, std::memory_order_release);
      remote.ring();
      while (seen.load() < i)
        std::this_thread::yield();
    }
  }};
  bool lost = false;
  std::vector<uint32_t> bits;
  auto look = [&] {
    bits.clear();
    (*bell)->collect(bits);
    if (!bits.empty())
      seen = published.load(std::memory_order_acquire);
    return !bits.empty();
  };
  while (seen < rounds && !lost) {
    (*bell)->arm();
    if (look())
      continue;
    pollfd waiting{(*bell)->event(), POLLIN, 0};
    lost = ::poll(&waiting, 1, 30'000) != 1;
    (*bell)->acknowledge();
    look();
  }
  seen = rounds;
  ringing.join();
  CHECK_FALSE(lost);
}
