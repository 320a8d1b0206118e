// The same exchanges over ZeroMQ (PAIR sockets, ipc), where libzmq was there at build time.
// Elsewhere (zeromq_absent.cpp) `zeromq_present` says so and the others throw.
#pragma once

#include "row.hpp"

namespace bench {

bool zeromq_present();

sample zeromq_round_trip(const context& c);
sample zeromq_one_way(const context& c);
sample zeromq_payload(const context& c, size_t bytes, size_t at_once);

int zeromq_serve(const context& c, const std::vector<std::string>& arguments);

} // namespace bench
