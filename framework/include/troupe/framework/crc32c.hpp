// CRC-32C (Castagnoli), as iSCSI, ext4 and RDMA's own transports use it.
#pragma once

#include "troupe/transport/bytes.hpp"

#include <cstdint>

namespace troupe {

/// The checksum of `bytes`. `before` is that of the bytes in front of them, for data in pieces.
/// Any thread.
uint32_t crc32c(transport::byte_view bytes, uint32_t before = 0) noexcept;

} // namespace troupe
