#include "processes.hpp"

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <fcntl.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

namespace troupe::guardian {

std::vector<pid_t> children() {
  char name[64];
  std::snprintf(name, sizeof name, "/proc/self/task/%d/children", static_cast<int>(::getpid()));
  int file = ::open(name, O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return {};
  std::vector<pid_t> found;
  pid_t number = 0;
  char buffer[4096];
  ssize_t length = 0;
  while ((length = ::read(file, buffer, sizeof buffer)) > 0) {
    for (ssize_t i = 0; i < length; ++i) {
      if (buffer[i] >= '0' && buffer[i] <= '9') {
        number = number * 10 + (buffer[i] - '0');
      } else if (number > 0) {
        found.push_back(number);
        number = 0;
      }
    }
  }
  ::close(file);
  return found;
}

uint64_t now_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

bool send_reply(int runner, const cluster::guardian::reply& what) noexcept {
  for (;;) {
    if (::send(runner, &what, sizeof what, MSG_NOSIGNAL) >= 0)
      return true;
    if (errno != EINTR)
      return false;
  }
}

} // namespace troupe::guardian
