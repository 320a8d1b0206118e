#include "reply.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <poll.h>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>

namespace troupe::cli {

arrival_flag::arrival_flag() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

arrival_flag::~arrival_flag() {
  if (fd_ >= 0)
    ::close(fd_);
}

void arrival_flag::raise() {
  uint64_t one = 1;
  if (::write(fd_, &one, sizeof one) < 0) {
    // Raised before.
  }
}

bool arrival_flag::wait(std::optional<std::chrono::milliseconds> limit,
                        const interrupts& stop) const {
  if (!usable())
    return true;
  using clock = std::chrono::steady_clock;
  auto start = clock::now();
  for (;;) {
    auto sleep = -1;
    if (limit) {
      auto left =
          *limit - std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - start);
      sleep = static_cast<int>(std::clamp<int64_t>(left.count(), 0, INT_MAX));
    }
    std::array<pollfd, 2> watched{{{fd_, POLLIN, 0}, {stop.fd(), POLLIN, 0}}};
    auto ready = ::poll(watched.data(), watched.size(), sleep);
    if (ready > 0)
      return true;
    if (ready == 0 && limit)
      return false;
  }
}

} // namespace troupe::cli
