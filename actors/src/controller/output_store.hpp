// What the tasks of all jobs wrote, in one file without a name. Internal.
#pragma once

#include "troupe/actors/unique_fd.hpp"
#include "troupe/transport/bytes.hpp"
#include "troupe/transport/error.hpp"

#include <cstdint>
#include <filesystem>
#include <vector>

namespace troupe::cluster {

/// A part of the store.
struct output_extent {
  uint64_t offset = 0;
  uint64_t length = 0; ///< bytes
};

/// Grows at its end and forgets nothing until it is destroyed; then the space is free again. One
/// thread. Writes go to the page cache.
class output_store {
public:
  /// Makes the file in `directory`.
  static result<output_store> create(const std::filesystem::path& directory);

  /// Sets `length` bytes aside, to be written in parts.
  output_extent reserve(uint64_t length);

  /// Writes a part of an extent, `at` bytes into it. @returns the system's reason, a full disk say.
  status write(const output_extent& extent, uint64_t at, transport::byte_view bytes);

  /// Up to `most` bytes of an extent, from `at` on.
  result<std::vector<char>> read(const output_extent& extent, uint64_t at, uint64_t most) const;

private:
  explicit output_store(unique_fd file) : file_(std::move(file)) {}

  unique_fd file_;
  uint64_t end_ = 0;
};

} // namespace troupe::cluster
