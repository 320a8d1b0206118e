#include "console.hpp"

#include "interrupts.hpp"

#include <cerrno>
#include <cstdlib>
#include <poll.h>
#include <unistd.h>

namespace troupe::cli {

namespace {

bool may_colour() {
  auto unwanted = std::getenv("NO_COLOR");
  auto terminal = std::getenv("TERM");
  return (!unwanted || !*unwanted) && terminal && std::string_view{terminal} != "dumb";
}

} // namespace

console::console(const interrupts& stop)
    : stop_(stop), output_is_terminal_(::isatty(STDOUT_FILENO) == 1),
      errors_are_terminal_(::isatty(STDERR_FILENO) == 1),
      colours_(output_is_terminal_ && may_colour()) {}

/// @returns 0 or the errno; EINTR only for Ctrl-C.
int console::write_all(int fd, std::string_view text) const {
  while (!text.empty()) {
    auto written = ::write(fd, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      // Somebody made our terminal or pipe non-blocking: wait for room.
      pollfd room{fd, POLLOUT, 0};
      ::poll(&room, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
    if (!text.empty() && stop_.raised())
      return EINTR;
  }
  return 0;
}

bool console::print(std::string_view text) {
  progress({});
  if (closed_)
    return false;
  auto problem = write_all(STDOUT_FILENO, text);
  if (problem == EINTR)
    return false;
  closed_ = problem != 0;
  if (problem != EPIPE)
    failure_ = problem;
  return !closed_;
}

void console::complain(std::string_view text) {
  note("troupe: " + std::string{text} + "\n");
}

void console::note(std::string_view text) {
  progress({});
  write_all(STDERR_FILENO, text);
}

void console::progress(std::string_view text) {
  if (text.empty() && !progress_shown_)
    return;
  progress_shown_ = !text.empty();
  write_all(STDERR_FILENO, "\r\x1b[K" + std::string{text});
}

} // namespace troupe::cli
