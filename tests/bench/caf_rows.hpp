// CAF programs in two processes: Troupe's columns and CAF's differ in their configuration only.
#pragma once

#include "row.hpp"

namespace bench {

// -- caf_message_rows.cpp: messages one after the other

/// An actor sends 64 bytes to an actor of the peer, which returns them. Value: µs.
sample caf_round_trip(const context& c);

/// An actor sends 64-byte messages to an actor of the peer, which acknowledges every 250th; at most
/// 1000 are not acknowledged. Value: million messages per second.
sample caf_one_way(const context& c);

/// An actor sends a `std::vector<char>` of `bytes`, over and over, `at_once` of them before the
/// first is acknowledged. Value: GB/s.
sample caf_payload(const context& c, size_t bytes, size_t at_once);

int caf_serve_echo(const context& c, const std::vector<std::string>& arguments);
int caf_serve_sink(const context& c, const std::vector<std::string>& arguments);

// -- caf_large_rows.cpp: one large message

/// What a message of 256 MiB costs in memory. Value: the receiver's growth over the payload's size.
sample caf_peak_memory(const context& c);

/// Whether a message of 5 GiB arrives, or fails in words that name its size. Value: seconds until
/// then.
sample caf_beyond_4_gib(const context& c);

int caf_serve_measurer(const context& c, const std::vector<std::string>& arguments);

// -- caf_node_rows.cpp: what nodes and connections cost

/// 64 bytes there and back with no other peer, then with 63 that are connected and idle. Value:
/// processor time per message, the latter over the former.
sample caf_idle_peers(const context& c);

/// 10,000 messages a second, one every 100 µs. Value: processor time per message in µs.
sample caf_paced(const context& c);

/// Two nodes that are connected and idle. Value: µs of processor time a second.
sample caf_idle_node(const context& c);

/// `remote_actor` to a node that was not connected. Value: µs.
sample caf_connect(const context& c);

int caf_serve_idler(const context& c, const std::vector<std::string>& arguments);

} // namespace bench
