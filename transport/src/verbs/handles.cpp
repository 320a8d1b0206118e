#include "handles.hpp"

#include "troupe/transport/log.hpp"

#include <fcntl.h>
#include <system_error>

namespace troupe::transport::verbs {

void log_release_failure(const char* what, int errno_value) noexcept {
  try {
    log_for("verbs")->error("release failed in {}: {}", what,
                            std::generic_category().message(errno_value));
  } catch (...) { // no memory for a log line: nothing left to tell
  }
}

bool set_non_blocking(int fd) noexcept {
  int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

} // namespace troupe::transport::verbs
