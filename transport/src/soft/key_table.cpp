#include "soft/key_table.hpp"

namespace troupe::transport::soft {

namespace {

// So many slots are left free before one is used again: enough for old keys to stay wrong, few
// enough for the table to stay in the cache.
constexpr size_t rested_slots = 1024;

constexpr uint32_t index_of(uint32_t key) {
  return key & 0xffffU;
}

constexpr uint32_t generation_of(uint32_t key) {
  return key >> 16;
}

} // namespace

std::optional<key_entry> find_key(const key_page& page, uint32_t key) noexcept {
  const auto& slot = page.slots[index_of(key)];
  auto generation = generation_of(key);
  if (generation == 0 || slot.generation.load(std::memory_order_acquire) != generation)
    return std::nullopt;
  key_entry entry;
  entry.address = slot.address.load(std::memory_order_relaxed);
  entry.length = slot.length.load(std::memory_order_relaxed);
  entry.rights = static_cast<access>(slot.rights.load(std::memory_order_relaxed) & 7U);
  entry.arena = slot.arena.load(std::memory_order_relaxed);
  entry.arena_offset = slot.arena_offset.load(std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (slot.generation.load(std::memory_order_relaxed) != generation)
    return std::nullopt;
  return entry;
}

bool key_is_current(const key_page& page, uint32_t key) noexcept {
  auto generation = generation_of(key);
  return generation != 0 &&
         page.slots[index_of(key)].generation.load(std::memory_order_seq_cst) == generation;
}

bool admits(const key_entry& entry, uint64_t address, uint64_t length, access asked) noexcept {
  if (!allows(entry.rights, asked) || address < entry.address)
    return false;
  auto offset = address - entry.address;
  return offset <= entry.length && length <= entry.length - offset;
}

key_writer::key_writer(key_page& page) : page_(page) {
  generations_.reserve(64);
}

std::optional<uint32_t> key_writer::add(const key_entry& entry) {
  uint32_t index = 0;
  if (free_.size() >= rested_slots || (generations_.size() == key_slots && !free_.empty())) {
    index = free_.front();
    free_.pop_front();
  } else if (generations_.size() < key_slots) {
    index = static_cast<uint32_t>(generations_.size());
    generations_.push_back(0);
  } else {
    return std::nullopt;
  }
  auto generation = generations_[index] % 0xffffU + 1;
  generations_[index] = generation;
  auto& slot = page_.slots[index];
  // Pairs with the acquire fence in find_key: whoever sees a new field sees the slot as free too.
  std::atomic_thread_fence(std::memory_order_release);
  slot.address.store(entry.address, std::memory_order_relaxed);
  slot.length.store(entry.length, std::memory_order_relaxed);
  slot.rights.store(static_cast<uint32_t>(entry.rights), std::memory_order_relaxed);
  slot.arena.store(entry.arena, std::memory_order_relaxed);
  slot.arena_offset.store(entry.arena_offset, std::memory_order_relaxed);
  slot.generation.store(generation, std::memory_order_release);
  return generation << 16 | index;
}

void key_writer::revoke(uint32_t key) {
  page_.slots[index_of(key)].generation.store(0, std::memory_order_seq_cst);
  page_.revocations.fetch_add(1, std::memory_order_seq_cst);
  free_.push_back(index_of(key));
}

} // namespace troupe::transport::soft
