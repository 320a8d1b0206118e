#include "terminal.hpp"

#include "program.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cli_test {

namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (auto& text : texts)
    out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

} // namespace

terminal::terminal(const std::vector<std::string>& words,
                   const std::vector<std::string>& environment)
    : screen_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
  REQUIRE(screen_ >= 0);
  REQUIRE(::grantpt(screen_) == 0);
  REQUIRE(::unlockpt(screen_) == 0);
  std::array<char, 128> path{};
  REQUIRE(::ptsname_r(screen_, path.data(), path.size()) == 0);
  winsize size{};
  size.ws_row = 24;
  size.ws_col = 200;
  ::ioctl(screen_, TIOCSWINSZ, &size);

  std::vector<std::string> argv{TROUPE_PROGRAM};
  argv.insert(argv.end(), words.begin(), words.end());
  auto variables = surroundings(environment);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  // The first terminal that a session's leader opens is its own: Ctrl-C reaches it.
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, path.data(), O_RDWR, 0);
  ::posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDERR_FILENO);
  auto failed = ::posix_spawn(&id_, argv[0].c_str(), &actions, &attributes, pointers(argv).data(),
                              pointers(variables).data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  REQUIRE(failed == 0);
}

terminal::~terminal() {
  if (id_ >= 0) {
    ::kill(id_, SIGKILL);
    while (::waitpid(id_, nullptr, 0) < 0 && errno == EINTR)
      ;
  }
  ::close(screen_);
}

void terminal::type(const std::string& keys) const {
  REQUIRE(::write(screen_, keys.data(), keys.size()) == static_cast<ssize_t>(keys.size()));
}

std::string terminal::expect(const std::string& text) {
  auto deadline = std::chrono::steady_clock::now() + support::patience;
  auto found = seen_.find(text);
  for (; found == std::string::npos; found = seen_.find(text)) {
    REQUIRE_MESSAGE(std::chrono::steady_clock::now() < deadline,
                    "no '" << text << "' on the screen: " << seen_);
    pollfd watched{screen_, POLLIN, 0};
    if (::poll(&watched, 1, 100) != 1)
      continue;
    std::array<char, 4096> part{};
    auto got = ::read(screen_, part.data(), part.size());
    REQUIRE_MESSAGE(got > 0, "the program ended without '" << text << "': " << seen_);
    seen_.append(part.data(), static_cast<size_t>(got));
  }
  auto end = found + text.size();
  auto before = seen_.substr(0, end);
  seen_.erase(0, end);
  return before;
}

int terminal::wait() {
  int how = 0;
  support::await("the program ends", [&] { return ::waitpid(id_, &how, WNOHANG) == id_; });
  id_ = -1;
  return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

} // namespace cli_test
