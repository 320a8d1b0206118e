// The version of CAF that this backend is written against, and all that depends on it by name.
// Internal.
#pragma once

#include <caf/config.hpp>

// CAF_VERSION is major * 10000 + minor * 100 + patch.
#if CAF_VERSION < 1700 || CAF_VERSION >= 1800
#error "Troupe's backend is written for CAF 0.17 (Debian's libcaf-dev 0.17.6)"
#endif

#include <caf/io/doorman.hpp>
#include <caf/io/middleman.hpp>
#include <caf/io/network/default_multiplexer.hpp>
#include <caf/io/network/event_handler.hpp>
#include <caf/io/network/interfaces.hpp>
#include <caf/io/scribe.hpp>
#include <caf/sec.hpp>

namespace troupe::transport {

/// CAF numbers its TCP connections by file descriptor; ours start far above, so that the two never
/// meet.
constexpr int64_t first_handle = int64_t{1} << 40;

} // namespace troupe::transport
