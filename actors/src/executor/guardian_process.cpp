#include "executor/guardian_process.hpp"

#include "troupe/actors/task_runner.hpp"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

namespace troupe::cluster {

namespace {

// Where the guardian finds its socket.
constexpr int guardian_fd = 3;

// The guardian's own patience with processes that will not die is shorter.
constexpr int close_deadline_ms = 15'000;

// The C library's own declarations (2.36) cannot be linked from C++.
int pidfd_open(pid_t process) {
  return static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
}

void pidfd_kill(int pidfd) {
  ::syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, nullptr, 0);
}

// Frees what posix_spawn was prepared with.
struct spawn_setup {
  spawn_setup() {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
  }

  spawn_setup(const spawn_setup&) = delete;

  ~spawn_setup() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

} // namespace

result<std::filesystem::path> find_guardian() {
  constexpr auto name = "troupe-guardian";
  std::error_code ignored;
  if (auto named = std::getenv("TROUPE_GUARDIAN"); named && *named != '\0') {
    if (std::filesystem::exists(named, ignored))
      return std::filesystem::path{named};
    return fail(errc::not_found,
                std::string{"TROUPE_GUARDIAN names "} + named + ", which does not exist");
  }
  auto here = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  auto beside = here / name;
  auto installed = (here / "../libexec/troupe" / name).lexically_normal();
  for (auto& place : {beside, installed})
    if (std::filesystem::exists(place, ignored))
      return place;
  return fail(errc::not_found, "cannot find the program " + std::string{name} + ", tried " +
                                   beside.string() + " and " + installed.string() +
                                   " (set TROUPE_GUARDIAN to its path)");
}

result<guardian_process> guardian_process::spawn(const std::filesystem::path& program) {
  auto context = "cannot start the guardian " + program.string();
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return fail(system_error(context + ": socketpair", errno));
  unique_fd ours{ends[0]};
  unique_fd theirs{ends[1]};

  spawn_setup setup;
  ::posix_spawn_file_actions_adddup2(&setup.actions, theirs.get(), guardian_fd);
  // A session of its own, so that Ctrl-C at the worker's terminal reaches the worker alone.
  ::posix_spawnattr_setflags(&setup.attributes, POSIX_SPAWN_SETSID);
  auto name = program.string();
  auto number = std::to_string(guardian_fd);
  char* arguments[] = {name.data(), number.data(), nullptr};
  pid_t process = 0;
  auto rc =
      ::posix_spawn(&process, name.c_str(), &setup.actions, &setup.attributes, arguments, environ);
  if (rc != 0)
    return fail(system_error(context, rc));
  unique_fd pidfd{pidfd_open(process)};
  if (!pidfd) {
    auto cause = errno;
    ::kill(process, SIGKILL);
    ::waitpid(process, nullptr, 0);
    return fail(system_error(context + ": pidfd_open", cause));
  }
  return guardian_process{process, std::move(ours), std::move(pidfd)};
}

guardian_process::~guardian_process() {
  if (!pidfd_)
    return;
  socket_.reset();
  pollfd death{pidfd_.get(), POLLIN, 0};
  while (::poll(&death, 1, close_deadline_ms) < 0 && errno == EINTR)
    ;
  bury();
}

std::string guardian_process::bury() {
  pidfd_kill(pidfd_.get());
  siginfo_t info{};
  while (::waitid(P_PIDFD, static_cast<id_t>(pidfd_.get()), &info, WEXITED) != 0 && errno == EINTR)
    ;
  socket_.reset();
  pidfd_.reset();
  if (info.si_code == CLD_EXITED)
    return "exited with code " + std::to_string(info.si_status);
  return "was killed by signal " + std::to_string(info.si_status);
}

} // namespace troupe::cluster
