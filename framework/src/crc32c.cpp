#include "troupe/framework/crc32c.hpp"

#include <array>

namespace troupe {

namespace {

constexpr size_t slices = 8;
using slice = std::array<uint32_t, 256>;

// Table k tells what a byte does to the checksum when k more bytes follow it, so that eight bytes
// are taken at once.
constexpr std::array<slice, slices> make_tables() {
  constexpr uint32_t reflected_polynomial = 0x82f63b78;
  std::array<slice, slices> tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    auto value = i;
    for (int bit = 0; bit < 8; ++bit)
      value = value & 1 ? value >> 1 ^ reflected_polynomial : value >> 1;
    tables[0][i] = value;
  }
  for (size_t k = 1; k < slices; ++k)
    for (size_t i = 0; i < 256; ++i)
      tables[k][i] = tables[k - 1][i] >> 8 ^ tables[0][tables[k - 1][i] & 255];
  return tables;
}

constexpr auto tables = make_tables();

} // namespace

uint32_t crc32c(transport::byte_view bytes, uint32_t before) noexcept {
  auto value = ~before;
  auto at = [&](size_t i) { return std::to_integer<uint32_t>(bytes[i]); };
  for (; bytes.size() >= slices; bytes = bytes.subspan(slices)) {
    value ^= at(0) | at(1) << 8 | at(2) << 16 | at(3) << 24;
    value = tables[7][value & 255] ^ tables[6][value >> 8 & 255] ^ tables[5][value >> 16 & 255] ^
            tables[4][value >> 24] ^ tables[3][at(4)] ^ tables[2][at(5)] ^ tables[1][at(6)] ^
            tables[0][at(7)];
  }
  for (auto byte : bytes)
    value = value >> 8 ^ tables[0][(value ^ std::to_integer<uint32_t>(byte)) & 255];
  return ~value;
}

} // namespace troupe
