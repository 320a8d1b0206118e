// A file descriptor with one owner.
#pragma once

#include <unistd.h>
#include <utility>

namespace troupe::cluster {

/// Owns a file descriptor, or none (-1); closes it when destroyed.
class unique_fd {
public:
  unique_fd() = default;

  /// Takes ownership of `fd`; any negative number stands for none.
  explicit unique_fd(int fd) noexcept : fd_(fd) {}

  unique_fd(unique_fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

  unique_fd& operator=(unique_fd&& other) noexcept {
    if (this != &other)
      reset(std::exchange(other.fd_, -1));
    return *this;
  }

  ~unique_fd() { reset(); }

  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }

  /// Closes what it owns and takes `fd` instead.
  void reset(int fd = -1) noexcept {
    if (fd_ >= 0)
      ::close(fd_);
    fd_ = fd;
  }

private:
  int fd_ = -1;
};

} // namespace troupe::cluster
