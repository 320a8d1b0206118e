#include "process.hpp"

#include "rig.hpp"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace conformance {

process::process(const std::string& role, const std::string& argument) {
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  output_ = ends[0];
  std::string arguments[] = {"conformance", "--device=" + under_test().device, "--role=" + role,
                             "--argument=" + argument};
  char* argv[] = {arguments[0].data(), arguments[1].data(), arguments[2].data(),
                  arguments[3].data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  int failed = posix_spawn(&id_, "/proc/self/exe", &actions, nullptr, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  REQUIRE(failed == 0);
}

process::~process() {
  kill();
  ::close(output_);
}

std::string process::line() {
  auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    if (auto end = pending_.find('\n'); end != std::string::npos) {
      auto text = pending_.substr(0, end);
      pending_.erase(0, end + 1);
      return text;
    }
    REQUIRE_MESSAGE(std::chrono::steady_clock::now() < deadline, "the process printed nothing");
    pollfd waiting{output_, POLLIN, 0};
    if (::poll(&waiting, 1, 100) <= 0)
      continue;
    char part[256];
    auto got = ::read(output_, part, sizeof part);
    REQUIRE_MESSAGE(got > 0, "the process ended instead of printing a line");
    pending_.append(part, static_cast<size_t>(got));
  }
}

void process::stop() {
  REQUIRE(::kill(id_, SIGSTOP) == 0);
  int how = 0;
  REQUIRE(waitpid(id_, &how, WUNTRACED) == id_);
  REQUIRE(WIFSTOPPED(how));
}

void process::go_on() {
  REQUIRE(::kill(id_, SIGCONT) == 0);
}

void process::kill() {
  if (id_ < 0)
    return;
  ::kill(id_, SIGKILL);
  while (waitpid(id_, nullptr, 0) < 0 && errno == EINTR)
    ;
  id_ = -1;
}

int process::wait() {
  auto deadline = std::chrono::steady_clock::now() + patience;
  int how = 0;
  while (waitpid(id_, &how, WNOHANG) == 0) {
    REQUIRE_MESSAGE(std::chrono::steady_clock::now() < deadline, "the process did not end");
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
  }
  id_ = -1;
  return how;
}

} // namespace conformance
