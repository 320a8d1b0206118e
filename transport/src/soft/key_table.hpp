// The table of a device's remote keys, in shared memory: its owner writes, peers read it before
// each operation, so that a revoked key fails from that moment on without a message.
//
// A slot is read as under a sequence lock: its generation before and after the other fields. A key
// is a slot's index and generation; generations of a slot differ until 65535 of them have passed.
#pragma once

#include "troupe/transport/device.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace troupe::transport::soft {

constexpr size_t key_slots = 65536;

/// What a key opens.
struct key_entry {
  uint64_t address = 0;
  uint64_t length = 0;
  access rights = access::local;
  uint32_t arena = 0;        ///< the memory file it lies in; 0 for ordinary memory
  uint64_t arena_offset = 0; ///< where in that file
};

struct key_slot {
  alignas(64) std::atomic<uint32_t> generation; ///< 0: free
  std::atomic<uint32_t> rights;
  std::atomic<uint64_t> address;
  std::atomic<uint64_t> length;
  std::atomic<uint64_t> arena_offset;
  std::atomic<uint32_t> arena;
};

/// The shared part; starts as zeros.
struct key_page {
  alignas(64) std::atomic<uint64_t> revocations; ///< how many keys were revoked so far
  key_slot slots[key_slots];
};

/// What `key` opens, or nothing when it is not valid now.
std::optional<key_entry> find_key(const key_page& page, uint32_t key) noexcept;

/// Whether `key` is valid at this moment, in the one order of all sequentially consistent
/// operations.
bool key_is_current(const key_page& page, uint32_t key) noexcept;

/// Whether `length` bytes at `address` lie in `entry` and `asked` is among its rights. Never
/// overflows.
bool admits(const key_entry& entry, uint64_t address, uint64_t length, access asked) noexcept;

/// The owner's end: hands out keys. Not thread-safe.
class key_writer {
public:
  explicit key_writer(key_page& page);

  /// @returns a new key, never 0; or nothing when all slots are taken.
  std::optional<uint32_t> add(const key_entry& entry);

  /// From its return on nobody who looks finds `key`. Who found it before may still be at work.
  void revoke(uint32_t key);

private:
  key_page& page_;
  std::vector<uint32_t> generations_; // last used, of every slot used so far
  std::deque<uint32_t> free_;         // longest free first, so that old keys stay wrong for long
};

} // namespace troupe::transport::soft
