// What can be said of an adapter without opening it for good.
#pragma once

#include "handles.hpp"
#include "socket_address.hpp"

#include <string>
#include <vector>

namespace troupe::transport::verbs {

/// One adapter of this machine.
struct adapter_report {
  std::string name;                      ///< "rxe0"
  bool usable = false;                   ///< whether connections can be made through it
  std::vector<socket_address> addresses; ///< that rdma_cm maps to it, without port
  std::string detail;                    ///< what it is, or why it is not usable and the remedy
};

/// Every adapter that libibverbs sees, in its order. Any thread.
std::vector<adapter_report> inspect_adapters();

/// This process's memlock limit in words: "unlimited" or "8 MiB".
std::string memlock_limit();

/// How to raise that limit.
extern const char* const memlock_remedy;

} // namespace troupe::transport::verbs
