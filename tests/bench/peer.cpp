#include "peer.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <spawn.h>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace bench {

void end_with_parent() {
  auto parent = ::getppid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) // it had ended before
    std::_Exit(1);
}

std::string this_program() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

std::string ending::text() const {
  if (timed_out)
    return "silent";
  if (WIFSIGNALED(status))
    return std::string{"killed by signal "} + ::strsignal(WTERMSIG(status));
  return "exit status " + std::to_string(WEXITSTATUS(status));
}

child::child(std::vector<std::string> argv, int inherit, bool silence_errors) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw std::runtime_error{std::string{"pipe2: "} + std::strerror(errno)};
  output_ = ends[0];
  std::vector<char*> arguments;
  for (auto& text : argv)
    arguments.push_back(text.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  if (silence_errors)
    ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  if (inherit >= 0)
    ::posix_spawn_file_actions_adddup2(&actions, inherit, 3);
  auto failed =
      ::posix_spawnp(&id_, argv[0].c_str(), &actions, nullptr, arguments.data(), ::environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (failed != 0) {
    ::close(output_);
    throw std::runtime_error{"cannot start " + argv[0] + ": " + std::strerror(failed)};
  }
}

child::~child() {
  if (id_ > 0) {
    ::kill(id_, SIGKILL);
    while (::waitpid(id_, nullptr, 0) < 0 && errno == EINTR)
      ;
  }
  ::close(output_);
}

child::got child::read_some(clock::time_point deadline) {
  auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock::now());
  pollfd waiting{output_, POLLIN, 0};
  if (left.count() <= 0 || ::poll(&waiting, 1, static_cast<int>(left.count())) <= 0)
    return got::nothing;
  std::array<char, 4096> part{};
  auto bytes = ::read(output_, part.data(), part.size());
  if (bytes <= 0)
    return got::end;
  pending_.append(part.data(), static_cast<size_t>(bytes));
  return got::something;
}

std::string child::line(std::chrono::seconds limit) {
  auto deadline = clock::now() + limit;
  auto end = pending_.find('\n');
  for (; end == std::string::npos; end = pending_.find('\n'))
    if (auto how = read_some(deadline); how != got::something)
      throw std::runtime_error{how == got::end ? "the peer ended instead of getting ready"
                                               : "the peer did not get ready"};
  auto text = pending_.substr(0, end);
  pending_.erase(0, end + 1);
  return text;
}

ending child::finish(std::chrono::seconds limit, std::string& output) {
  auto deadline = clock::now() + limit;
  auto how = got::something;
  while (how == got::something)
    how = read_some(deadline);
  output = std::exchange(pending_, {});
  ending out;
  if (how == got::nothing) {
    out.timed_out = true;
    return out; // the destructor kills it
  }
  while (::waitpid(id_, &out.status, WNOHANG) == 0) {
    if (clock::now() >= deadline) {
      out.timed_out = true;
      return out;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  id_ = -1;
  return out;
}

} // namespace bench
