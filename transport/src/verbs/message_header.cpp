#include "message_header.hpp"

namespace troupe::transport::verbs {

namespace {

void put(std::byte* out, uint64_t value, size_t width) {
  for (size_t index = 0; index < width; ++index)
    out[index] = static_cast<std::byte>(value >> (8 * index));
}

uint64_t get(const std::byte* from, size_t width) {
  uint64_t value = 0;
  for (size_t index = 0; index < width; ++index)
    value |= std::to_integer<uint64_t>(from[index]) << (8 * index);
  return value;
}

} // namespace

std::array<std::byte, message_header::bytes> message_header::encode() const {
  std::array<std::byte, bytes> out;
  put(out.data(), static_cast<uint32_t>(what), 4);
  put(out.data() + 4, immediate, 4);
  put(out.data() + 8, length, 8);
  return out;
}

std::optional<message_header> message_header::decode(std::span<const std::byte, bytes> from) {
  message_header header;
  auto what = static_cast<uint32_t>(get(from.data(), 4));
  if (what != static_cast<uint32_t>(kind::message) && what != static_cast<uint32_t>(kind::notify))
    return std::nullopt;
  header.what = static_cast<kind>(what);
  header.immediate = static_cast<uint32_t>(get(from.data() + 4, 4));
  header.length = get(from.data() + 8, 8);
  return header;
}

} // namespace troupe::transport::verbs
