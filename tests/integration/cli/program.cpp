#include "program.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace cli_test {

namespace {

using clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds look_again{5};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (auto& text : texts)
    out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

int memory_file(const std::string& content) {
  auto fd = ::memfd_create("troupe-test", MFD_CLOEXEC);
  REQUIRE(fd >= 0);
  REQUIRE(::write(fd, content.data(), content.size()) == static_cast<ssize_t>(content.size()));
  REQUIRE(::lseek(fd, 0, SEEK_SET) == 0);
  return fd;
}

std::string content_of(int fd) {
  std::string text;
  std::array<char, 65536> part{};
  for (off_t at = 0;;) {
    auto got = ::pread(fd, part.data(), part.size(), at);
    if (got <= 0)
      return text;
    text.append(part.data(), static_cast<size_t>(got));
    at += got;
  }
}

struct scratch_directory {
  scratch_directory() {
    auto name = (std::filesystem::temp_directory_path() / "troupe-cli-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~scratch_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::filesystem::path path;
};

} // namespace

const std::filesystem::path& scratch() {
  static const scratch_directory directory;
  return directory.path;
}

std::vector<std::string> surroundings(const std::vector<std::string>& more) {
  std::vector<std::string> entries;
  for (auto entry = ::environ; *entry; ++entry) {
    std::string text{*entry};
    auto guides = text.starts_with("TROUPE_") || text.starts_with("XDG_") ||
                  text.starts_with("HOME=") || text.starts_with("TERM=") ||
                  text.starts_with("NO_COLOR=");
    if (!guides)
      entries.push_back(std::move(text));
  }
  entries.push_back("HOME=" + scratch().string());
  entries.emplace_back("TERM=xterm");
  entries.insert(entries.end(), more.begin(), more.end());
  return entries;
}

int wait_for_end(pid_t id) {
  auto deadline = clock::now() + patience;
  int how = 0;
  while (::waitpid(id, &how, WNOHANG) == 0) {
    REQUIRE_MESSAGE(clock::now() < deadline, "the program did not end");
    std::this_thread::sleep_for(look_again);
  }
  return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

program::program(const std::vector<std::string>& words, const setting& with) {
  std::vector<std::string> argv{TROUPE_PROGRAM};
  argv.insert(argv.end(), words.begin(), words.end());
  auto environment = surroundings(with.environment);
  auto input = memory_file(with.input);
  out_ = memory_file("");
  err_ = memory_file("");
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addchdir_np(&actions, with.directory.c_str());
  ::posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, with.output >= 0 ? with.output : out_,
                                     STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, err_, STDERR_FILENO);
  auto failed = ::posix_spawn(&id_, argv[0].c_str(), &actions, nullptr, pointers(argv).data(),
                              pointers(environment).data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(input);
  REQUIRE(failed == 0);
}

program::~program() {
  if (id_ >= 0) {
    ::kill(id_, SIGKILL);
    while (::waitpid(id_, nullptr, 0) < 0 && errno == EINTR)
      ;
  }
  ::close(out_);
  ::close(err_);
}

void program::signal(int number) const {
  REQUIRE(::kill(id_, number) == 0);
}

std::string program::out() const {
  return content_of(out_);
}

std::string program::err() const {
  return content_of(err_);
}

void program::await_err(const std::string& text) const {
  auto deadline = clock::now() + patience;
  while (err().find(text) == std::string::npos) {
    REQUIRE_MESSAGE(clock::now() < deadline, "it said: " << err());
    std::this_thread::sleep_for(look_again);
  }
}

ending program::wait() {
  auto code = wait_for_end(id_);
  id_ = -1;
  return {code, out(), err()};
}

ending troupe(const std::vector<std::string>& words, const setting& with) {
  return program{words, with}.wait();
}

} // namespace cli_test
