// What two sides tell each other before a connection stands, in the private data of its set-up.
//
//   connecting side                        accepting side
//     | ---- connect: ask ------------------> |   a nonce
//     | <--- reject: challenge -------------- |   another nonce, and proof of the key
//     | ---- connect: proof ----------------> |   proof of the key, and the token of a memory link
//     | <--- accept: welcome ---------------- |   proof of the key
//
// Nobody has a queue pair to the other before both have proved that they have the key. Each tag
// authenticates, with the key, which step it belongs to and everything that was said before it;
// both nonces are in that, so nothing can be used a second time, for another step or in the other
// direction. Two sides without a key need one connect: open, welcome.
//
// Every hello is 48 bytes, little-endian: magic u32, version u16, kind u8, step u8, receive_slabs
// u16, capabilities u16, slab_bytes u32, then 16 bytes by step (ask, challenge: nonce; proof, open:
// challenge u64, token u64; refusal: reason u32), then tag[16]. What a step does not use is 0.
// Magic and version stay where they are in every version.
#pragma once

#include "troupe/transport/bytes.hpp"
#include "troupe/transport/error.hpp"
#include "troupe/transport/shared_key.hpp"

#include <array>
#include <cstdint>

namespace troupe::transport {

/// What a connection is for.
enum class connection_kind : uint8_t {
  stream = 1, ///< a `channel`: CAF's byte stream
  memory = 2, ///< a `memory_link`: one-sided operations
};

enum class hello_step : uint8_t {
  open = 1,  ///< asks for the connection, without a key
  ask,       ///< asks for a challenge
  challenge, ///< the answer to that
  proof,     ///< asks for the connection
  welcome,   ///< grants it
  refusal,   ///< of either side
};

/// Why somebody refuses; on the wire.
enum class refusal : uint32_t {
  needs_key = 1, ///< the accepting side has a key, the connecting side none
  has_no_key,    ///< the other way round
  wrong_key,     ///< their keys differ
  other_user,    ///< no key, and the peer is not of the same user on the same machine
  stale,         ///< a proof for a challenge that nobody waits for (any more)
  not_expected,  ///< a memory link with a token that nobody gave out
  no_room,       ///< the accepting side lacks memory or queue entries; its log says more
  bad_terms,     ///< slabs that are too few or too small
  malformed,     ///< not a hello, or not one that may come here
};

struct hello {
  using nonce_bytes = std::array<std::byte, 16>;

  hello_step step = hello_step::refusal;
  connection_kind kind = connection_kind::stream;
  uint16_t receive_slabs = 0; ///< stream: how many receives the sender of this hello has posted
  uint32_t slab_bytes = 0;    ///< stream: the size of each
  uint16_t capabilities = 0;  ///< bits; what the other side does not know it ignores. None yet
  nonce_bytes nonce{};
  uint64_t challenge = 0; ///< which one a proof answers: the first 8 bytes of its nonce
  uint64_t token = 0;     ///< memory: which of the listener's expected peers this is
  refusal reason{};
  shared_key::tag tag{};

  bool operator==(const hello&) const = default;
};

constexpr size_t hello_bytes = 48;

/// A hello as it travels.
using packed_hello = std::array<std::byte, hello_bytes>;

packed_hello encode(const hello& h);

/// Reads a peer's hello; bytes after it are ignored (rdma_cm pads private data).
/// @returns `errc::version_mismatch` with both versions, `errc::protocol_violation` for anything
/// else that is not a hello.
result<hello> decode_hello(byte_view bytes);

/// The part of a packed hello that its own tag authenticates.
inline byte_view untagged(const packed_hello& bytes) {
  return byte_view{bytes}.first(hello_bytes - sizeof(shared_key::tag));
}

} // namespace troupe::transport
