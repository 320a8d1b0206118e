// Owners of what the system hands out: file descriptors and mappings.
#pragma once

#include "troupe/transport/bytes.hpp"

#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace troupe::transport::soft {

/// Owns a file descriptor.
class descriptor {
public:
  descriptor() = default;
  explicit descriptor(int fd) noexcept : fd_(fd) {}
  descriptor(descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~descriptor() {
    if (fd_ >= 0)
      ::close(fd_);
  }

  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }

private:
  int fd_ = -1;
};

/// Owns a mapping of memory.
class mapping {
public:
  mapping() = default;
  mapping(std::byte* data, size_t size) noexcept : data_(data), size_(size) {}
  mapping(mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  mapping& operator=(mapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~mapping() {
    if (data_)
      ::munmap(data_, size_);
  }

  std::byte* data() const noexcept { return data_; }
  size_t size() const noexcept { return size_; }
  explicit operator bool() const noexcept { return data_ != nullptr; }

private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

} // namespace troupe::transport::soft
