// The first thing that two sides tell each other, in the private data of connection set-up.
#pragma once

#include "troupe/transport/bytes.hpp"
#include "troupe/transport/error.hpp"

#include <array>
#include <cstdint>

namespace troupe::transport {

/// What a connection is for.
enum class connection_kind : uint8_t {
  stream = 1, ///< a `channel`: CAF's byte stream
  memory = 2, ///< a `memory_link`: one-sided operations
};

/// Wire format, little-endian, 24 bytes: magic u32, version u16, kind u8, 0 u8, receive_slabs u16,
/// 0 u16, slab_bytes u32, token u64.
struct hello {
  connection_kind kind = connection_kind::stream;
  uint16_t receive_slabs = 0; ///< stream: how many receives the sender of this hello has posted
  uint32_t slab_bytes = 0;    ///< stream: the size of each
  uint64_t token = 0;         ///< memory: which of the listener's expected peers this is

  bool operator==(const hello&) const = default;
};

constexpr size_t hello_bytes = 24;

std::array<std::byte, hello_bytes> encode(const hello& h);

/// Reads a peer's hello; bytes after it are ignored (rdma_cm pads private data).
/// @returns `errc::version_mismatch` with both versions, `errc::protocol_violation` for anything
/// else that is not a hello.
result<hello> decode_hello(byte_view bytes);

} // namespace troupe::transport
