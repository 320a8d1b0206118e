// For rows that measure round trips under circumstances of their own.
#pragma once

#include "caf_system.hpp"
#include "measurement.hpp"
#include "sample.hpp"

namespace bench {

/// Round trips of 64 bytes with a peer in the role caf-echo.
sample ping(caf_client& client, const effort& how_long);

} // namespace bench
