// The header of a BASP message as it travels (CAF's protocol between nodes, version 0.17).
// Internal.
#pragma once

#include "caf/caf_version.hpp"
#include "troupe/transport/bytes.hpp"

#include <caf/io/basp/header.hpp>
#include <caf/io/basp/message_type.hpp>
#include <cstdint>
#include <limits>

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

} // namespace troupe::transport::basp
