// CAF programs in two processes: Troupe's columns and CAF's differ in their configuration only.
#pragma once

#include "row.hpp"

namespace bench {

/// An actor sends 64 bytes to an actor of the peer, which returns them. Value: µs.
sample caf_round_trip(const context& c);

/// An actor sends 64-byte messages to an actor of the peer, which acknowledges every 250th; at most
/// 1000 are not acknowledged. Value: messages per second.
sample caf_one_way(const context& c);

/// An actor sends a `std::vector<char>` of `bytes`, over and over, `window` of them before the
/// first is acknowledged. Value: GB/s.
sample caf_payload(const context& c, size_t bytes, size_t window);

int caf_serve_echo(const context& c, const std::vector<std::string>& arguments);
int caf_serve_sink(const context& c, const std::vector<std::string>& arguments);

} // namespace bench
