#include "process.hpp"

#include "subject.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace cluster_test {

namespace {

using clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds look_again{10};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (auto& text : texts)
    out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

// Appending, so that what several processes write there stays apart.
int memory_file() {
  auto fd = ::memfd_create("troupe-test", MFD_CLOEXEC);
  REQUIRE(fd >= 0);
  REQUIRE(::fcntl(fd, F_SETFL, O_APPEND) == 0);
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

} // namespace

void await(std::string_view what, const std::function<bool()>& condition) {
  auto deadline = clock::now() + under_test().patience;
  while (!condition()) {
    if (clock::now() >= deadline)
      FAIL("waited in vain: " << std::string{what});
    std::this_thread::sleep_for(look_again);
  }
}

process::process(std::vector<std::string> argv, std::vector<std::string> environment,
                 const std::filesystem::path& directory) {
  out_ = memory_file();
  err_ = memory_file();
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, out_, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, err_, STDERR_FILENO);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t usual;
  sigemptyset(&usual);
  for (auto number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE})
    sigaddset(&usual, number); // whatever the test was started with
  ::posix_spawnattr_setsigdefault(&attributes, &usual);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  auto failed = ::posix_spawn(&id_, argv[0].c_str(), &actions, &attributes, pointers(argv).data(),
                              pointers(environment).data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  ended_ = failed != 0;
  REQUIRE_MESSAGE(failed == 0, argv[0]);
}

process::~process() {
  kill();
  ::close(out_);
  ::close(err_);
}

bool process::reap(int flags) {
  int how = 0;
  auto got = ::waitpid(id_, &how, flags);
  if (got != id_)
    return false;
  ended_ = true;
  code_ = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
  return true;
}

void process::signal(int number) const {
  REQUIRE_FALSE(ended_);
  REQUIRE(::kill(id_, number) == 0);
}

void process::signal_group(int number) const {
  REQUIRE_FALSE(ended_);
  REQUIRE(::kill(-id_, number) == 0);
}

std::string process::out() const {
  return content_of(out_);
}

std::string process::err() const {
  return content_of(err_);
}

bool process::runs() {
  return !ended_ && !reap(WNOHANG);
}

void process::kill() {
  if (ended_)
    return;
  ::kill(id_, SIGKILL);
  while (!reap(0) && errno == EINTR)
    ;
}

ending process::wait() {
  await("the program ends", [this] { return !runs(); });
  return {code_, out(), err()};
}

std::vector<pid_t> marked_processes(const std::string& mark, std::string_view also) {
  std::vector<pid_t> found;
  std::error_code problem;
  for (auto& entry : std::filesystem::directory_iterator{"/proc", problem}) {
    auto name = entry.path().filename().string();
    pid_t id = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), id).ptr !=
        name.data() + name.size())
      continue;
    auto marked = false;
    auto fits = also.empty();
    std::ifstream environment{entry.path() / "environ", std::ios::binary};
    for (std::string text; std::getline(environment, text, '\0');) {
      marked |= text == mark;
      fits |= text.starts_with(also);
    }
    if (marked && fits)
      found.push_back(id);
  }
  return found;
}

scratch_directory::scratch_directory() {
  auto name = (std::filesystem::temp_directory_path() / "troupe-cluster-XXXXXX").string();
  REQUIRE(::mkdtemp(name.data()) != nullptr);
  path_ = name;
}

scratch_directory::~scratch_directory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::vector<std::string> surroundings(const std::vector<std::string>& more) {
  std::vector<std::string> entries;
  for (auto entry = ::environ; *entry; ++entry) {
    std::string_view text{*entry};
    auto guides = text.starts_with("TROUPE_") || text.starts_with("XDG_");
    auto replaced = std::any_of(more.begin(), more.end(), [&](const std::string& ours) {
      return text.starts_with(ours.substr(0, ours.find('=') + 1));
    });
    if (!guides && !replaced)
      entries.emplace_back(text);
  }
  entries.insert(entries.end(), more.begin(), more.end());
  return entries;
}

std::string read_file(const std::filesystem::path& file) {
  std::ifstream in{file, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, {}};
}

void write_file(const std::filesystem::path& file, std::string_view content) {
  std::ofstream out{file, std::ios::binary};
  out << content;
  REQUIRE(out.flush().good());
}

} // namespace cluster_test
