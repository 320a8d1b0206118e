// The memory that two connected processes of one host share: a ring each way and a few words.
#pragma once

#include "soft/ring.hpp"
#include "soft/shared_file.hpp"

#include <memory>

namespace troupe::transport::soft {

constexpr size_t ring_size = 256 * 1024;

/// What one side tells the other. Starts as zeros.
struct link_side {
  ring_positions outgoing;                      ///< of the ring that this side writes
  alignas(64) std::atomic<uint32_t> receives;   ///< posted so far by this side
  std::atomic<uint32_t> closed;                 ///< 1: this side writes no more
  alignas(64) std::atomic<uint32_t> waiting;    ///< 1: this side wants its doorbell rung on news
  alignas(64) std::atomic<uint32_t> key_in_use; ///< the peer's key of this side's copy in progress
};

struct link_page {
  link_side sides[2]; ///< of the connecting and the accepting process
};

constexpr size_t link_header_size = 4096;
static_assert(sizeof(link_page) <= link_header_size);
constexpr size_t link_memory_size = link_header_size + 2 * ring_size;

/// One side's view of it.
class link_memory {
public:
  /// `index` is 0 in the connecting process, 1 in the accepting one.
  link_memory(mapping memory, size_t index) : memory_(std::move(memory)), index_(index) {}

  link_side& here() noexcept { return page().sides[index_]; }
  link_side& there() noexcept { return page().sides[1 - index_]; }
  byte_span outgoing() noexcept { return ring(index_); }
  byte_span incoming() noexcept { return ring(1 - index_); }

private:
  link_page& page() noexcept { return *reinterpret_cast<link_page*>(memory_.data()); }
  byte_span ring(size_t index) noexcept {
    return {memory_.data() + link_header_size + index * ring_size, ring_size};
  }

  mapping memory_;
  size_t index_;
};

} // namespace troupe::transport::soft
