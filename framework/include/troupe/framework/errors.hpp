// Errors on their way through CAF: a `troupe::error` inside a `caf::error`.
#pragma once

#include "troupe/transport/error.hpp"

#include <caf/actor_system.hpp>
#include <caf/error.hpp>

namespace troupe {

/// `e` as CAF carries it: category "troupe", code and text.
caf::error to_caf(const error& e);

/// The error that `to_caf` made; CAF's own errors come out with the `errc` that fits best and CAF's
/// text (or the text that Troupe's backend put into them).
error to_troupe(caf::actor_system& system, const caf::error& e);

} // namespace troupe
