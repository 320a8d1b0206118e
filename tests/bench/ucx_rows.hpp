// UCX, measured by its own `ucx_perftest`, which must be in PATH.
#pragma once

#include "row.hpp"

namespace bench {

bool ucx_present();

/// Tag messages of 64 bytes there and back; `spinning` as its users have it, else its sleeping
/// mode.
sample ucx_round_trip(const context& c, bool spinning);

sample ucx_one_way(const context& c);
sample ucx_payload(const context& c, size_t bytes);

} // namespace bench
