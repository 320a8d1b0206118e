// The header before every message on adapters without immediate data (iWARP), where a
// write_notify is a write and then a message that only announces it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace troupe::transport::verbs {

struct message_header {
  enum class kind : uint32_t { message = 1, notify = 2 };
  static constexpr size_t bytes = 16;

  kind what = kind::message;
  uint32_t immediate = 0; ///< notify
  uint64_t length = 0;    ///< notify: bytes that were written

  /// Little-endian: kind, immediate, length.
  std::array<std::byte, bytes> encode() const;

  /// @returns nothing for what no peer of ours sends.
  static std::optional<message_header> decode(std::span<const std::byte, bytes> from);
};

} // namespace troupe::transport::verbs
