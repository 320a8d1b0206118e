// troupe-guardian: starts and watches the tasks of a worker, so that no start blocks the worker and
// no task outlives it. Started by the worker (see task_runner), never by hand.

#include "guardian.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace {

// Where the socket goes, so that every other descriptor can be told from it.
constexpr int runner_fd = 3;

bool is_seqpacket(int fd) {
  int type = 0;
  socklen_t length = sizeof type;
  return ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_SEQPACKET;
}

// Leaves open: standard input and output on /dev/null (a task inherits its input from here),
// standard error, and the socket.
bool arrange_descriptors(int socket) {
  // Not close-on-exec: where the standard three are closed, this may be one of them.
  int null = ::open("/dev/null", O_RDWR);
  if (null < 0 || ::dup2(null, STDIN_FILENO) < 0 || ::dup2(null, STDOUT_FILENO) < 0)
    return false;
  if (::fcntl(STDERR_FILENO, F_GETFD) < 0 && ::dup2(null, STDERR_FILENO) < 0)
    return false;
  // A worker's libraries may have left descriptors open that are not close-on-exec.
  if (socket != runner_fd && ::dup3(socket, runner_fd, O_CLOEXEC) < 0)
    return false;
  return ::fcntl(runner_fd, F_SETFD, FD_CLOEXEC) == 0 && ::close_range(runner_fd + 1, ~0U, 0) == 0;
}

// Tasks inherit the actions from here; their mask is emptied when they start.
void arrange_signals() {
  // Not through the C library, which hides its own two signals; posix_spawn has left them ignored.
  // The kernel's structure is larger than this nowhere, and all zero stands for the default action.
  constexpr std::array<unsigned long, 8> plain{};
  constexpr size_t mask_bytes = 8;
  for (int number = 1; number <= SIGRTMAX; ++number)
    ::syscall(SYS_rt_sigaction, number, plain.data(), nullptr, mask_bytes);
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
}

int failed(const char* what) {
  std::fprintf(stderr, "troupe-guardian: %s: %s\n", what, std::strerror(errno));
  return 1;
}

} // namespace

int main(int argc, char** argv) {
  int socket = -1;
  if (argc == 2)
    std::from_chars(argv[1], argv[1] + std::strlen(argv[1]), socket);
  if (socket < runner_fd || !is_seqpacket(socket)) {
    std::fprintf(stderr, "troupe-guardian: started by trouped for its tasks, not by hand\n");
    return 2;
  }
  if (!arrange_descriptors(socket))
    return failed("arranging file descriptors");
  arrange_signals();
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
    return failed("becoming a child subreaper");
  sigset_t death;
  sigemptyset(&death);
  sigaddset(&death, SIGCHLD);
  int deaths = ::signalfd(-1, &death, SFD_CLOEXEC | SFD_NONBLOCK);
  if (deaths < 0)
    return failed("signalfd");
  int timer = ::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  if (timer < 0)
    return failed("timerfd_create");
  troupe::guardian::guardian{runner_fd, deaths, timer}.run();
  // Nothing to tidy up; skipping the exit handlers makes the end as quick as it can be.
  ::_exit(0);
}
