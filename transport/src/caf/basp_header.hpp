// The header of a BASP message as it travels (CAF's protocol between nodes, version 0.17).
// Internal.
#pragma once

#include "caf/caf_version.hpp"
#include "caf/message_reader.hpp"
#include "caf/message_writer.hpp"
#include "troupe/transport/bytes.hpp"

#include <caf/io/basp/header.hpp>
#include <caf/io/basp/message_type.hpp>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace troupe::transport::basp {

using caf::io::basp::header;
using caf::io::basp::header_size;
using caf::io::basp::message_type;

/// What its field for the length can say.
constexpr uint64_t longest_payload = std::numeric_limits<uint32_t>::max();

/// Writes `what` to the first `header_size` bytes of `place`.
void encode(byte_span place, const header& what);

/// Reads a header from the first `header_size` bytes of `bytes`. Nothing is checked.
header decode(byte_view bytes);

/// Our flag in a header: the payload begins with a layout, and its holes are attachments of the
/// segment.
constexpr uint8_t has_layout = 0x80;

/// The bytes that say where the holes are: their number (u32), and for each its position and length
/// (u64), all little-endian.
std::vector<char> encode_layout(std::span<const hole> holes);

struct layout {
  std::vector<hole_place> holes;
  byte_view rest; ///< what follows it
};

/// Reads a layout from the beginning of a payload. @returns nothing when it makes no sense: holes
/// out of order or outside of the payload, empty ones, more than the machine's memory.
std::optional<layout> decode_layout(byte_view payload);

} // namespace troupe::transport::basp
