// A peer on this host as its memory is seen from here: one-sided operations without its help, and
// the life line, a socket whose hang-up says that the peer is gone.
#pragma once

#include "soft/context.hpp"
#include "soft/link_memory.hpp"

#include <functional>
#include <set>
#include <span>
#include <sys/types.h>
#include <unordered_map>

namespace troupe::transport::soft {

/// What became of an attempt to reach the peer's memory directly.
enum class reach {
  done,
  refused,  ///< wrong key, missing right, or outside the region
  indirect, ///< not possible from here (yet): the peer has to do it
};

class shared_link final : public watcher {
public:
  struct parts {
    std::shared_ptr<link_memory> memory;
    mapping keys; ///< the peer's key_page
    descriptor life_line;
    pid_t peer = 0; ///< 0 when it cannot be seen from here
  };

  shared_link(std::shared_ptr<context> device, parts made, std::function<void()> on_peer_gone);
  ~shared_link() override;

  /// Whether `asked` is allowed on all of `length` bytes.
  bool allowed(remote_address where, uint64_t length, access asked) const;

  reach write(remote_address where, byte_view source);
  reach read(remote_address where, byte_span target);

  /// Fetch-and-add, or compare-and-swap when `swaps`. `where` is aligned to 8.
  reach atomic(remote_address where, bool swaps, uint64_t operand, uint64_t swap, uint64_t& old);

  void on_ready(int descriptor, uint32_t events) override;

private:
  struct peer_arena {
    mapping memory;
    uint32_t key; ///< when this one is revoked, the arena is gone
  };

  const key_page& keys() const noexcept {
    return *reinterpret_cast<const key_page*>(parts_.keys.data());
  }

  // Runs `arena_use` on mapped memory or `process_use` on the peer's address.
  template <class ArenaUse, class ProcessUse>
  reach with(remote_address where, uint64_t length, access asked, ArenaUse arena_use,
             ProcessUse process_use);

  // Where `entry`'s arena is mapped; asks the peer for it and gives null when it is not.
  std::byte* arena_start(const key_entry& entry);
  void take_arena(uint32_t id, uint64_t size, uint32_t key, descriptor file);
  void give_arena(uint32_t id);
  void drop_dead_arenas();
  bool read_life_line();

  bool process_reachable();
  reach copy_process(uint64_t address, byte_span local, bool to_peer);

  std::shared_ptr<context> device_;
  parts parts_;
  std::function<void()> on_peer_gone_;
  descriptor process_; // pidfd, to be sure that `peer` still is that process
  bool process_forbidden_ = false;
  uint64_t revocations_seen_ = 0;
  std::unordered_map<uint32_t, peer_arena> arenas_;
  std::set<uint32_t> asked_for_;
};

} // namespace troupe::transport::soft
