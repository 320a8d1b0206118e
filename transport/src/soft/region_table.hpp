// A device's registered memory: who may reach what, and under which key.
//
// What is guaranteed when a region goes: from then on every new access fails. An access of a peer
// that had begun is waited for, at most `revocation_patience` (a peer that was stopped in the
// middle of a copy cannot hold us up for ever). Should one come later still: in memory of
// `allocate` it does no harm, because that memory's file is never used for anything else; in
// memory of `register_memory` it may change bytes that the owner uses again.
#pragma once

#include "soft/key_table.hpp"
#include "soft/shared_file.hpp"
#include "troupe/transport/device.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

namespace troupe::transport::soft {

constexpr std::chrono::seconds revocation_patience{1};

/// The key that a peer's copy in progress uses; 0 for none. Lives in memory shared with that peer.
using busy_key = std::atomic<uint32_t>;

/// A memory file of `allocate`, for a peer to map.
struct arena_offer {
  descriptor file;
  uint64_t size = 0;
  uint32_t key = 0; ///< of the region; the arena is gone once this key is revoked
};

/// Any thread.
class region_table : public std::enable_shared_from_this<region_table> {
public:
  static result<std::shared_ptr<region_table>> make();

  region_table(descriptor file, mapping page);

  result<std::unique_ptr<memory_region>> allocate(size_t size, access rights);
  result<std::unique_ptr<memory_region>> adopt(byte_span memory, access rights);

  /// The file of the key table, for peers to map read-only.
  int keys_file() const noexcept { return file_.get(); }

  /// Arena `id`, or nothing when it is gone.
  std::optional<arena_offer> offer(uint32_t id) const;

  /// Runs `use` on the `length` bytes that a peer calls `where`, if `asked` is allowed there. They
  /// stay registered until `use` returns.
  /// @returns whether it was allowed.
  template <class Use>
  bool serve(remote_address where, size_t length, access asked, Use use) {
    std::shared_lock lock{serving_};
    auto entry = find_key(page(), where.key);
    if (!entry || !admits(*entry, where.address, length, asked))
      return false;
    use(reinterpret_cast<std::byte*>(where.address));
    return true;
  }

  /// Revocations will wait while `word` names their key. Keep it mapped through `keeper`.
  void add_peer(const busy_key* word, std::shared_ptr<void> keeper);
  void remove_peer(const busy_key* word);

private:
  friend class region;

  struct arena {
    uint32_t id = 0;
    uint32_t key = 0;
    size_t size = 0;
    descriptor file;
  };
  struct peer {
    const busy_key* word;
    std::shared_ptr<void> keeper;
  };

  result<uint32_t> add_key(byte_span memory, access rights);
  void forget(uint32_t key, std::byte* arena_start);

  key_page& page() const noexcept { return *reinterpret_cast<key_page*>(page_.data()); }

  descriptor file_;
  mapping page_;
  std::shared_mutex serving_; // held shared while memory is served, alone while a key goes
  mutable std::mutex guard_;  // everything below
  key_writer keys_;
  uint32_t last_arena_ = 0;
  std::map<std::byte*, arena> arenas_; // by first byte
  std::vector<peer> peers_;
};

} // namespace troupe::transport::soft
