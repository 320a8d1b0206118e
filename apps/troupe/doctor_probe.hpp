// Looks at this machine for `troupe doctor`.
#pragma once

#include "doctor.hpp"
#include "settings.hpp"

namespace troupe::cli {

/// Looks at devices, limits and directories, and tries the device `device` out: opens it, and
/// allocates and registers memory. The key is the one that `options` and `environment` name. Call
/// it while there is one thread: it makes a child process.
report examine_machine(const connection_options& options, const std::string& device,
                       std::span<const std::string> environment);

} // namespace troupe::cli
