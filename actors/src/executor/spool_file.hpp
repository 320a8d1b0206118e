// Files without a name, for the output of tasks.
#pragma once

#include "troupe/actors/unique_fd.hpp"
#include "troupe/transport/error.hpp"

#include <filesystem>

namespace troupe::cluster {

/// Opens a new, empty file in `directory` that has no name there and goes away with its last
/// descriptor. Readable and writable by this user only; writes append, so that a task whose
/// processes open /dev/stdout anew do not overwrite each other.
/// @returns an error that names the directory and the remedy.
result<unique_fd> open_spool_file(const std::filesystem::path& directory);

/// The same on file systems that know no O_TMPFILE: made under a name that is removed at once.
result<unique_fd> open_unlinked_spool_file(const std::filesystem::path& directory);

} // namespace troupe::cluster
