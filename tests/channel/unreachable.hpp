#pragma once

#include <string>

namespace channel_test {

/// Why hosts of our own cannot be made on this machine; empty when they can.
std::string why_no_namespaces();

} // namespace channel_test
