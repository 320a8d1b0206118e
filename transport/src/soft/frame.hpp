// What travels between two connected pairs: frames of a header, for some kinds an extension, and a
// payload. Little-endian, the same in a ring and on a TCP connection.
//
// One-sided operations that are carried as frames have a sequence number, counted by both sides.
// A send or notification is only transmitted once the peer is known to have posted a receive for
// it, so that a stream never stands still for want of a receive, and work waits in its own queue.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace troupe::transport::soft {

static_assert(std::endian::native == std::endian::little, "frames are laid out as in memory");

enum class frame_kind : uint8_t {
  send = 1,        ///< one part of a message
  write,           ///< one part of a write; the first has a place
  notify,          ///< consumes a receive: notify_extension
  read_request,    ///< a place
  read_response,   ///< one part of what the oldest unanswered read asked for
  atomic_request,  ///< atomic_extension
  atomic_response, ///< the old value, 8 bytes of payload
  acknowledge,     ///< only the header
  bye,             ///< bye_extension; nothing follows
};

constexpr uint8_t first_part = 1;
constexpr uint8_t last_part = 2;

struct frame_header {
  uint32_t length = 0; ///< of the payload
  frame_kind kind = frame_kind::acknowledge;
  uint8_t flags = 0;         ///< first_part, last_part
  uint16_t unused = 0;       ///< 0
  uint32_t acknowledged = 0; ///< sequence of the last write that was carried out here
  uint32_t receives = 0;     ///< how many receives were posted here so far; wraps around
};

struct place_extension {
  uint64_t address = 0;
  uint64_t length = 0; ///< of the whole operation
  uint32_t key = 0;
  uint32_t unused = 0;
};

struct notify_extension {
  uint64_t length = 0; ///< of the write before it
  uint32_t immediate = 0;
  uint32_t unused = 0;
};

struct atomic_extension {
  uint64_t address = 0;
  uint64_t operand = 0;
  uint64_t swap = 0;
  uint32_t key = 0;
  uint32_t swaps = 0; ///< 1: compare and swap; 0: fetch and add
};

struct bye_extension {
  uint32_t reason = 0;   ///< an errc
  uint32_t sequence = 0; ///< remote_access: of the operation that failed
};

/// The sequence number after `sequence`. 0 is none.
constexpr uint32_t sequence_after(uint32_t sequence) {
  return sequence == 0xffffffffU ? 1 : sequence + 1;
}

constexpr size_t largest_extension = sizeof(atomic_extension);

/// Payload of one frame at most: between two frames others may be served.
constexpr uint32_t largest_part = 128 * 1024;

constexpr size_t extension_size(frame_kind kind, uint8_t flags) {
  switch (kind) {
  case frame_kind::write:
    return (flags & first_part) != 0 ? sizeof(place_extension) : 0;
  case frame_kind::read_request:
    return sizeof(place_extension);
  case frame_kind::notify:
    return sizeof(notify_extension);
  case frame_kind::atomic_request:
    return sizeof(atomic_extension);
  case frame_kind::bye:
    return sizeof(bye_extension);
  default:
    return 0;
  }
}

} // namespace troupe::transport::soft
