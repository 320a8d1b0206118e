// Views of raw bytes, as they pass through every layer of the transport.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace troupe::transport {

/// Bytes that are only read. Does not own them.
using byte_view = std::span<const std::byte>;

/// Bytes that may be written. Does not own them.
using byte_span = std::span<std::byte>;

/// The bytes of `text`, which must outlive the result.
inline byte_view bytes_of(std::string_view text) {
  return std::as_bytes(std::span{text.data(), text.size()});
}

/// `bytes` seen as text; they must outlive the result.
inline std::string_view text_of(byte_view bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

} // namespace troupe::transport
