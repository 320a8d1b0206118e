#include "interrupts.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace troupe::cli {

namespace {

std::atomic<int> signalled_fd = -1;
static_assert(std::atomic<int>::is_always_lock_free, "read by a signal handler");

void on_interrupt(int) {
  auto saved = errno;
  uint64_t one = 1;
  if (::write(signalled_fd.load(), &one, sizeof one) < 0) {
    // Only when the counter is full: it is readable then.
  }
  errno = saved;
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);
}

} // namespace

interrupts::interrupts() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  handle(SIGPIPE, SIG_IGN);
  if (fd_ < 0)
    return;
  signalled_fd.store(fd_);
  handle(SIGINT, on_interrupt);
}

interrupts::~interrupts() {
  handle(SIGINT, SIG_DFL);
  handle(SIGPIPE, SIG_DFL);
  if (fd_ >= 0)
    ::close(fd_);
}

bool interrupts::raised() const {
  pollfd watched{fd_, POLLIN, 0};
  return fd_ >= 0 && ::poll(&watched, 1, 0) == 1;
}

void interrupts::clear() {
  uint64_t count = 0;
  if (::read(fd_, &count, sizeof count) < 0) {
    // Nothing was raised.
  }
}

} // namespace troupe::cli
