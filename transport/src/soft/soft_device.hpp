// The soft device: the device contract on a machine without an RDMA adapter, over shared memory
// within a host and TCP between hosts.
#pragma once

#include "troupe/transport/device.hpp"

namespace troupe::transport {

enum class soft_mode {
  automatic, ///< shared memory where both processes run on one host, as one user
  tcp_only,
};

/// Opens a soft device: "soft", or "soft:tcp" with `tcp_only`. Any thread; any number of them.
/// @returns `errc::limit_too_low` and others when the system has no descriptors or memory left.
result<std::unique_ptr<device>> open_soft_device(soft_mode mode);

} // namespace troupe::transport
