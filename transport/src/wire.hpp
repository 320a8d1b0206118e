// Fixed-width fields in bytes of the wire. Internal.
#pragma once

#include "troupe/transport/bytes.hpp"

#include <bit>
#include <cstring>
#include <type_traits>

namespace troupe::transport {

static_assert(std::endian::native == std::endian::little,
              "the wire is little-endian; this machine would have to swap bytes");

/// Stores `value` at `offset`; the caller has made sure that it fits.
template <class T>
void store(byte_span bytes, size_t offset, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

/// Loads a `T` from `offset`; the caller has made sure that it is there.
template <class T>
T load(byte_view bytes, size_t offset) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

} // namespace troupe::transport
