// Memory that processes of one host share: files without a name, passed as descriptors.
#pragma once

#include "soft/descriptor.hpp"
#include "troupe/transport/error.hpp"

#include <string>

namespace troupe::transport::soft {

/// `size` rounded up to whole pages.
size_t whole_pages(size_t size);

/// Makes a zeroed memory file of `size` bytes (whole pages) that can neither grow nor shrink any
/// more. `name` shows up in /proc only.
result<descriptor> make_shared_file(const std::string& name, size_t size);

/// Forbids every further writable mapping of `file`; the ones that exist stay writable.
status forbid_writers(int file);

/// Checks that `file`, which a peer passed, has at least `size` bytes and can never shrink: so
/// reading its mapping cannot raise SIGBUS.
status check_shared_file(int file, size_t size);

/// Maps the first `size` bytes of `file`. A forked child does not have the mapping: what it did
/// there would be done to us and our peers.
result<mapping> map_shared_file(int file, size_t size, bool writable);

} // namespace troupe::transport::soft
