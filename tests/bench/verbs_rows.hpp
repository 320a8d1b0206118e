// The RDMA device alone, measured by `ib_send_lat` and `ib_read_bw`, which must be in PATH.
#pragma once

#include "row.hpp"

namespace bench {

/// Why these cannot be measured with `c.device`; empty when they can.
std::string verbs_absent(const context& c);

/// A send of 64 bytes there and back; `spinning`, or sleeping on a completion channel.
sample verbs_round_trip(const context& c, bool spinning);

/// RDMA Reads of `bytes`.
sample verbs_payload(const context& c, size_t bytes);

} // namespace bench
