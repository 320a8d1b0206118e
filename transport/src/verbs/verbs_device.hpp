// The verbs device: RDMA adapters through libibverbs and librdmacm.
#pragma once

#include "troupe/transport/device.hpp"
#include "troupe/transport/open_device.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe::transport {

/// Every adapter of this machine, usable ones first; names are "verbs:NAME". Any thread.
std::vector<device_candidate> list_verbs_devices();

/// Opens the adapter `name` ("rxe0", without the "verbs:").
/// @returns `errc::no_such_device` when there is none of that name or it cannot be used, with the
/// remedy.
result<std::unique_ptr<device>> open_verbs_device(const std::string& name);

} // namespace troupe::transport
