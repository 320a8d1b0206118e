#include "support/child_process.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace support {

namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (auto& text : texts)
    out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

} // namespace

std::string this_executable() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

child_process::child_process(std::vector<std::string> argv, std::vector<std::string> environment) {
  std::array<int, 2> ends{};
  REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
  output_ = ends[0];
  for (auto entry = ::environ; *entry; ++entry) {
    std::string text{*entry};
    auto name = text.substr(0, text.find('=') + 1);
    auto replaced = false;
    for (auto& ours : environment)
      replaced = replaced || ours.starts_with(name);
    if (!replaced)
      environment.push_back(std::move(text));
  }
  auto arguments = pointers(argv);
  auto variables = pointers(environment);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  auto failed =
      ::posix_spawn(&id_, argv[0].c_str(), &actions, nullptr, arguments.data(), variables.data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  REQUIRE_MESSAGE(failed == 0, argv[0]);
}

child_process::~child_process() {
  kill();
  ::close(output_);
}

bool child_process::read_more(std::chrono::steady_clock::time_point deadline) {
  for (;;) {
    REQUIRE_MESSAGE(std::chrono::steady_clock::now() < deadline, "the process is silent");
    pollfd waiting{output_, POLLIN, 0};
    if (::poll(&waiting, 1, 100) <= 0)
      continue;
    std::array<char, 4096> part{};
    auto got = ::read(output_, part.data(), part.size());
    if (got <= 0)
      return false;
    pending_.append(part.data(), static_cast<size_t>(got));
    return true;
  }
}

std::string child_process::line() {
  auto deadline = std::chrono::steady_clock::now() + patience;
  auto end = pending_.find('\n');
  for (; end == std::string::npos; end = pending_.find('\n'))
    REQUIRE_MESSAGE(read_more(deadline), "the process ended instead of printing a line");
  auto text = pending_.substr(0, end);
  pending_.erase(0, end + 1);
  return text;
}

std::string child_process::rest() {
  auto deadline = std::chrono::steady_clock::now() + patience;
  while (read_more(deadline))
    ;
  return std::exchange(pending_, {});
}

void child_process::signal(int number) {
  REQUIRE(::kill(id_, number) == 0);
}

void child_process::kill() {
  if (id_ < 0)
    return;
  ::kill(id_, SIGKILL);
  while (::waitpid(id_, nullptr, 0) < 0 && errno == EINTR)
    ;
  id_ = -1;
}

int child_process::wait() {
  auto deadline = std::chrono::steady_clock::now() + patience;
  int how = 0;
  while (::waitpid(id_, &how, WNOHANG) == 0) {
    REQUIRE_MESSAGE(std::chrono::steady_clock::now() < deadline, "the process did not end");
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
  }
  id_ = -1;
  return how;
}

} // namespace support
