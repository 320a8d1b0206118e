#include "caf/basp_header.hpp"

#include "wire.hpp"

#include <bit>
#include <type_traits>
#include <unistd.h>

namespace troupe::transport::basp {

namespace {

constexpr size_t hole_bytes = 16;

uint64_t memory_of_machine() {
  static const auto bytes = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                            static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

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

std::vector<char> encode_layout(std::span<const hole> holes) {
  std::vector<char> written(sizeof(uint32_t) + holes.size() * hole_bytes);
  auto place = std::as_writable_bytes(std::span{written});
  store(place, 0, static_cast<uint32_t>(holes.size()));
  place = place.subspan(sizeof(uint32_t));
  for (auto& each : holes) {
    store(place, 0, each.position);
    store(place, 8, static_cast<uint64_t>(each.bytes.size()));
    place = place.subspan(hole_bytes);
  }
  return written;
}

std::optional<layout> decode_layout(byte_view payload) {
  if (payload.size() < sizeof(uint32_t))
    return std::nullopt;
  auto count = load<uint32_t>(payload, 0);
  payload = payload.subspan(sizeof(uint32_t));
  if (count == 0 || count > payload.size() / hole_bytes)
    return std::nullopt;
  layout read;
  read.rest = payload.subspan(count * hole_bytes);
  uint64_t total = 0;
  uint64_t position = 0;
  for (; count > 0; --count, payload = payload.subspan(hole_bytes)) {
    hole_place each{load<uint64_t>(payload, 0), load<uint64_t>(payload, 8)};
    if (each.position < position || each.position > read.rest.size() || each.length == 0 ||
        each.length > memory_of_machine() - total)
      return std::nullopt;
    position = each.position;
    total += each.length;
    read.holes.push_back(each);
  }
  return read;
}

} // namespace troupe::transport::basp
