// The state page: what a worker shows of itself, read by the monitor with RDMA Read. No message, no
// work on the worker.
//
// 128 bytes: 16 words of 64 bits, little-endian. Word 1 is a sequence that is odd while the page is
// being written, as in a seqlock; but a remote read fetches cache lines in any order, so a checksum
// tells in addition whether all words belong to one state.
#pragma once

#include "troupe/framework/node_info.hpp"
#include "troupe/transport/bytes.hpp"
#include "troupe/transport/error.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace troupe::cluster {

/// What the page tells.
struct state_snapshot {
  incarnation_id incarnation = 0;
  /// Advanced by the worker's event loop: a page that is read well while this stands still is that
  /// of a stuck process.
  uint64_t epoch = 0;
  uint32_t cpu_busy_permille = 0; ///< of all CPUs of the host, since the sample before
  uint32_t load_permille = 0;     ///< load average over a minute, times 1000
  uint64_t memory_total = 0;      ///< bytes
  uint64_t memory_available = 0;  ///< bytes
  uint64_t running_tasks = 0;
  uint64_t finished_tasks = 0; ///< since the worker started, however they ended

  bool operator==(const state_snapshot&) const = default;
};

/// The page itself, in memory that peers may read.
struct alignas(64) state_page {
  std::array<std::atomic<uint64_t>, 16> words;
};
static_assert(sizeof(state_page) == 128 && std::atomic<uint64_t>::is_always_lock_free);

constexpr size_t state_page_bytes = sizeof(state_page);

/// Writes a state page. One thread at a time.
class state_page_writer {
public:
  /// Makes a page at the beginning of `memory`, which must outlive this; nothing is published yet.
  /// @returns `errc::invalid_argument` when `memory` has less than `state_page_bytes` bytes or does
  /// not begin at a multiple of 64.
  static result<state_page_writer> create(transport::byte_span memory);

  /// Replaces what the page tells. Never waits for readers.
  void publish(const state_snapshot& state) noexcept;

private:
  explicit state_page_writer(state_page& page) : page_(&page) {}

  state_page* page_;
  uint64_t sequence_ = 0;
};

/// Reads a copy of a page, as an RDMA Read has left it.
/// @returns `errc::no_resources` when the copy is torn, as it was written meanwhile: read again;
/// `errc::protocol_violation` when it is no state page, or none that was ever published;
/// `errc::version_mismatch`.
result<state_snapshot> read_snapshot(transport::byte_view copy);

} // namespace troupe::cluster
