#include "caf/basp_header.hpp"

#include "wire.hpp"

#include <bit>
#include <type_traits>

namespace troupe::transport::basp {

namespace {

// CAF's fields are big-endian.
template <class T>
T swapped(T value) {
  if constexpr (sizeof(T) == sizeof(uint32_t))
    return __builtin_bswap32(value);
  else
    return __builtin_bswap64(value);
}

} // namespace

void encode(byte_span place, const header& what) {
  store(place, 0, what.operation);
  store(place, 1, uint16_t{0});
  store(place, 3, what.flags);
  store(place, 4, swapped(what.payload_len));
  store(place, 8, swapped(what.operation_data));
  store(place, 16, swapped(what.source_actor));
  store(place, 24, swapped(what.dest_actor));
}

header decode(byte_view bytes) {
  header read{};
  read.operation = load<message_type>(bytes, 0);
  read.flags = load<uint8_t>(bytes, 3);
  read.payload_len = swapped(load<uint32_t>(bytes, 4));
  read.operation_data = swapped(load<uint64_t>(bytes, 8));
  read.source_actor = swapped(load<uint64_t>(bytes, 16));
  read.dest_actor = swapped(load<uint64_t>(bytes, 24));
  return read;
}

} // namespace troupe::transport::basp
