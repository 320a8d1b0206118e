// What the machine under this process is and has.
#pragma once

#include "troupe/transport/error.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// The host's name as the system knows it; "localhost" when it has none.
std::string host_name();

/// How many CPUs this process may run on (its affinity mask); at least 1.
uint32_t available_cpus();

/// The figures of /proc/meminfo that matter here, in bytes.
struct memory_figures {
  uint64_t total = 0;
  uint64_t available = 0; ///< for new programs without swapping, as the kernel estimates
};

/// Reads the text of /proc/meminfo.
/// @returns `errc::system` when one of the two lines is missing or malformed.
result<memory_figures> parse_meminfo(std::string_view text);

/// Reads a whole small file, also one of /proc whose size the system gives as 0.
/// @returns the system's reason when it cannot be read, `errc::invalid_argument` for a directory or
/// for more than 16 MiB.
result<std::string> read_text_file(const std::string& path);

} // namespace troupe
