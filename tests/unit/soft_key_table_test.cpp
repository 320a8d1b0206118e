#include "soft/key_table.hpp"

#include <doctest/doctest.h>
#include <limits>
#include <memory>
#include <set>
#include <thread>

using namespace troupe::transport;
using namespace troupe::transport::soft;

// Not `access`, which is a function of unistd.h too.
using rights = troupe::transport::access;

namespace {

constexpr rights everything = rights::remote_read | rights::remote_write | rights::remote_atomic;

key_entry entry_at(uint64_t address, uint64_t length, rights held = everything) {
  return {address, length, held, 3, 4096};
}

} // namespace

TEST_CASE("a key opens what it was made for until it is revoked") {
  auto page = std::make_unique<key_page>();
  key_writer keys{*page};
  auto first = keys.add(entry_at(0x1000, 64, rights::remote_read));
  auto second = keys.add(entry_at(0x2000, 128));
  REQUIRE(first);
  REQUIRE(second);
  CHECK(*first != 0);
  CHECK(*first != *second);
  auto found = find_key(*page, *first);
  REQUIRE(found);
  CHECK(found->address == 0x1000);
  CHECK(found->length == 64);
  CHECK(found->rights == rights::remote_read);
  CHECK(found->arena == 3);
  CHECK(found->arena_offset == 4096);
  CHECK(key_is_current(*page, *first));

  keys.revoke(*first);
  CHECK_FALSE(find_key(*page, *first));
  CHECK_FALSE(key_is_current(*page, *first));
  CHECK(find_key(*page, *second)->address == 0x2000);
  CHECK(page->revocations == 1);
}

TEST_CASE("keys that were never handed out open nothing") {
  auto page = std::make_unique<key_page>();
  key_writer keys{*page};
  auto key = keys.add(entry_at(0x1000, 64));
  REQUIRE(key);
  for (uint32_t wrong : {0U, 1U, *key + 1, *key ^ 0x80000000U, *key ^ 0x10000U, ~0U})
    CHECK_FALSE(find_key(*page, wrong));
}

TEST_CASE("a key is not used again while its slot is") {
  auto page = std::make_unique<key_page>();
  key_writer keys{*page};
  std::set<uint32_t> seen;
  for (int i = 0; i < 200'000; ++i) {
    auto key = keys.add(entry_at(0x1000, 64));
    REQUIRE(key);
    CHECK(seen.insert(*key).second);
    keys.revoke(*key);
  }
}

TEST_CASE("all slots can be taken, and one that is given back serves again") {
  auto page = std::make_unique<key_page>();
  key_writer keys{*page};
  uint32_t last = 0;
  for (size_t i = 0; i < key_slots; ++i) {
    auto key = keys.add(entry_at(i, 1));
    REQUIRE(key);
    last = *key;
  }
  CHECK_FALSE(keys.add(entry_at(1, 1)));
  keys.revoke(last);
  auto again = keys.add(entry_at(7, 1));
  REQUIRE(again);
  CHECK(*again != last);
  CHECK_FALSE(find_key(*page, last));
  CHECK(find_key(*page, *again)->address == 7);
}

TEST_CASE("rights and bounds are checked without overflow") {
  constexpr auto most = std::numeric_limits<uint64_t>::max();
  auto entry = entry_at(0x1000, 0x100);
  CHECK(admits(entry, 0x1000, 0x100, rights::remote_read));
  CHECK(admits(entry, 0x10ff, 1, rights::remote_write));
  CHECK(admits(entry, 0x1100, 0, rights::remote_atomic));
  CHECK_FALSE(admits(entry, 0x0fff, 1, rights::remote_read));
  CHECK_FALSE(admits(entry, 0x1000, 0x101, rights::remote_read));
  CHECK_FALSE(admits(entry, 0x1100, 1, rights::remote_read));
  CHECK_FALSE(admits(entry, 0x1101, 0, rights::remote_read));
  CHECK_FALSE(admits(entry, 0x1000, most, rights::remote_read));
  CHECK_FALSE(admits(entry, most, 2, rights::remote_read));
  CHECK_FALSE(admits(entry, 0x1080, most - 0x1000, rights::remote_read));
  auto at_the_end = entry_at(most - 0xff, 0x100);
  CHECK(admits(at_the_end, most - 0xff, 0x100, rights::remote_read));
  CHECK_FALSE(admits(at_the_end, most, 2, rights::remote_read));
  CHECK_FALSE(admits(entry_at(0x1000, 8, rights::remote_write), 0x1000, 8, rights::remote_read));
  CHECK_FALSE(admits(entry_at(0x1000, 8, rights::local), 0x1000, 8, rights::remote_read));
}

// Entries are made so that a mix of two would show.
TEST_CASE("a reader never sees half of an entry") {
  auto page = std::make_unique<key_page>();
  key_writer keys{*page};
  std::atomic<uint32_t> shared{0};
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> found{0};
  std::atomic<uint64_t> wrong{0};
  std::thread reading{[&] {
    while (!stop) {
      auto entry = find_key(*page, shared.load());
      if (!entry)
        continue;
      ++found;
      wrong += entry->length != entry->address * 3 || entry->arena_offset != entry->address * 5;
    }
  }};
  // So that slots are used again soon.
  std::vector<uint32_t> held;
  for (size_t i = 0; i < key_slots - 8; ++i)
    held.push_back(*keys.add(entry_at(1, 3)));
  for (uint64_t i = 1; i < 100'000 || (found == 0 && i < 100'000'000); ++i) {
    auto key = keys.add({i, i * 3, everything, 1, i * 5});
    REQUIRE(key);
    shared = *key;
    if (i % 1000 == 0)
      std::this_thread::yield();
    keys.revoke(*key);
  }
  stop = true;
  reading.join();
  CHECK(wrong == 0);
  CHECK(found > 0);
}
