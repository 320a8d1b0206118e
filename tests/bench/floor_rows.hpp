// What the machine allows at best: two processes, shared memory, no actors.
#pragma once

#include "row.hpp"

namespace bench {

/// 64 bytes there and back; each side sleeps on a futex, or spins.
sample floor_round_trip(const context& c, bool spinning);

/// 64-byte slots of a ring, of which 1000 may be unread.
sample floor_one_way(const context& c);

/// The receiver copies `bytes` out of shared memory into warm memory of its own.
sample floor_payload(const context& c, size_t bytes);

int floor_serve(const context& c, const std::vector<std::string>& arguments);

} // namespace bench
