#include "troupe/actors/captured_output.hpp"

#include <algorithm>
#include <cerrno>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>

namespace troupe::cluster {

// -- mapped_output

mapped_output::mapped_output(mapped_output&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

mapped_output& mapped_output::operator=(mapped_output&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

mapped_output::~mapped_output() {
  if (data_)
    ::munmap(const_cast<std::byte*>(data_), size_);
}

// -- captured_output

captured_output::captured_output(unique_fd file) noexcept : file_(std::move(file)) {
  struct stat info {};
  if (file_ && ::fstat(file_.get(), &info) == 0)
    size_ = static_cast<uint64_t>(info.st_size);
}

result<size_t> captured_output::read(uint64_t offset, transport::byte_span out) const {
  if (offset >= size_)
    return 0;
  auto wanted = static_cast<size_t>(std::min<uint64_t>(out.size(), size_ - offset));
  size_t done = 0;
  while (done < wanted) {
    auto count =
        ::pread(file_.get(), out.data() + done, wanted - done, static_cast<off_t>(offset + done));
    if (count > 0)
      done += static_cast<size_t>(count);
    else if (count == 0)
      break;
    else if (errno != EINTR)
      return fail(
          system_error("reading captured output at byte " + std::to_string(offset + done), errno));
  }
  return done;
}

result<mapped_output> captured_output::map() const {
  if (size_ == 0)
    return mapped_output{};
  auto length = static_cast<size_t>(size_);
  // Private and writable, though nobody writes: an adapter takes no other memory of a file.
  auto address = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE, file_.get(), 0);
  if (address == MAP_FAILED)
    return fail(
        system_error("mapping " + std::to_string(size_) + " bytes of captured output", errno));
  return mapped_output{static_cast<const std::byte*>(address), length};
}

} // namespace troupe::cluster
