// What the tests of this directory run on.
#pragma once

#include <chrono>
#include <string>

namespace cluster_test {

struct subject {
  std::string device = "soft";       ///< for TROUPE_DEVICE
  std::string address = "127.0.0.1"; ///< where controllers listen
  std::chrono::seconds patience{90}; ///< for any wait: the machine may be loaded
};

/// Set once, by main.
subject& under_test();

} // namespace cluster_test
