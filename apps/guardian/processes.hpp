// Small helpers on processes, shared by guardian and keeper.
#pragma once

#include "executor/guardian_protocol.hpp"

#include <cstdint>
#include <sys/types.h>
#include <vector>

namespace troupe::guardian {

/// The children of this process, zombies included. Empty where the kernel does not tell.
std::vector<pid_t> children();

/// CLOCK_MONOTONIC, in nanoseconds.
uint64_t now_ns() noexcept;

/// Sends `what` as one message; waits while the socket is full.
/// @returns whether the runner is still there.
bool send_reply(int runner, const cluster::guardian::reply& what) noexcept;

} // namespace troupe::guardian
