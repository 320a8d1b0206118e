#include "controller/output_store.hpp"

#include "executor/spool_file.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace troupe::cluster {

result<output_store> output_store::create(const std::filesystem::path& directory) {
  auto file = open_spool_file(directory);
  if (!file)
    return fail(file.error());
  // A spool file appends whatever the offset; extents are written where they lie.
  if (::fcntl(file->get(), F_SETFL, 0) != 0)
    return fail(system_error("opening the file for the output of tasks", errno));
  return output_store{std::move(*file)};
}

output_extent output_store::reserve(uint64_t length) {
  output_extent made{end_, length};
  end_ += length;
  return made;
}

status output_store::write(const output_extent& extent, uint64_t at, transport::byte_view bytes) {
  while (!bytes.empty()) {
    auto n =
        ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(extent.offset + at));
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return fail(system_error("keeping the output of a task", errno));
    bytes = bytes.subspan(static_cast<size_t>(n));
    at += static_cast<uint64_t>(n);
  }
  return {};
}

result<std::vector<char>> output_store::read(const output_extent& extent, uint64_t at,
                                             uint64_t most) const {
  if (at >= extent.length)
    return std::vector<char>{};
  std::vector<char> out(std::min(most, extent.length - at));
  size_t filled = 0;
  while (filled < out.size()) {
    auto n = ::pread(file_.get(), out.data() + filled, out.size() - filled,
                     static_cast<off_t>(extent.offset + at + filled));
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return fail(system_error("reading the output of a task", n < 0 ? errno : EIO));
    filled += static_cast<size_t>(n);
  }
  return out;
}

} // namespace troupe::cluster
