// From the name in a configuration to an open device.
#pragma once

#include "troupe/transport/device.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::transport {

/// A device that was found on this machine, usable or not.
struct device_candidate {
  std::string name; ///< as in a configuration: "soft", "verbs:rxe0"
  bool usable = false;
  std::string address; ///< of an RDMA device: the IP address that rdma_cm would use
  std::string detail;  ///< what it is, or why it is not usable and how to mend that
};

/// Everything this machine has, best first; "soft" is always there and last.
std::vector<device_candidate> list_devices();

/// An open device and why it was chosen, in words for people.
struct device_choice {
  std::unique_ptr<device> opened;
  std::string reason;
};

/// Who is to be reached: adapters have no address that only this machine knows.
enum class device_scope : uint8_t { network, this_machine };

/// Opens the device named by `TROUPE_DEVICE` or, when that is not set, by `name`: `auto` (within
/// `device_scope::network` an adapter when there is a usable one, else soft), `verbs` (the first
/// usable adapter), `verbs:NAME`, `soft` (shared memory within a host, TCP between hosts),
/// `soft:tcp` (TCP only).
/// @returns `errc::no_such_device` with the list of what there is.
result<device_choice> open_device(std::string_view name,
                                  device_scope scope = device_scope::network);

} // namespace troupe::transport
