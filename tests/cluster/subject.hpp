// What the tests of this directory run on.
#pragma once

#include <string>

namespace cluster_test {

struct subject {
  std::string device = "soft";       ///< for TROUPE_DEVICE
  std::string address = "127.0.0.1"; ///< where controllers listen
};

/// Set once, by main.
subject& under_test();

} // namespace cluster_test
