#include "support/child_process.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace support {

namespace {

using clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds look_again{2};

std::chrono::seconds limit = patience;

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

std::string content_of(int fd, size_t from = 0) {
  std::string text;
  std::array<char, 65536> part{};
  for (auto at = static_cast<off_t>(from);;) {
    auto got = ::pread(fd, part.data(), part.size(), at);
    if (got <= 0)
      return text;
    text.append(part.data(), static_cast<size_t>(got));
    at += got;
  }
}

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

void be_patient_for(std::chrono::seconds length) {
  limit = length;
}

void await(std::string_view what, const std::function<bool()>& condition) {
  auto deadline = clock::now() + limit;
  while (!condition()) {
    if (clock::now() >= deadline)
      FAIL("waited in vain: " << std::string{what});
    std::this_thread::sleep_for(look_again);
  }
}

std::string this_executable() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

child_process::child_process(const launch& how) : out_(memory_file()), err_(memory_file()) {
  auto input = memory_file();
  REQUIRE(::write(input, how.input.data(), how.input.size()) ==
          static_cast<ssize_t>(how.input.size()));
  REQUIRE(::lseek(input, 0, SEEK_SET) == 0);
  spawn_setup setup;
  auto* actions = &setup.actions;
  if (!how.directory.empty())
    ::posix_spawn_file_actions_addchdir_np(actions, how.directory.c_str());
  ::posix_spawn_file_actions_adddup2(actions, input, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(actions, how.output >= 0 ? how.output : out_, STDOUT_FILENO);
  if (how.captures_errors)
    ::posix_spawn_file_actions_adddup2(actions, err_, STDERR_FILENO);
  sigset_t usual;
  sigemptyset(&usual);
  for (auto number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE})
    sigaddset(&usual, number); // whatever the test was started with
  ::posix_spawnattr_setsigdefault(&setup.attributes, &usual);
  ::posix_spawnattr_setpgroup(&setup.attributes, 0);
  auto flags = POSIX_SPAWN_SETSIGDEF | (how.own_group ? POSIX_SPAWN_SETPGROUP : 0);
  ::posix_spawnattr_setflags(&setup.attributes, static_cast<short>(flags));
  auto argv = how.argv;
  auto environment = how.environment.value_or(std::vector<std::string>{});
  auto failed =
      ::posix_spawn(&id_, argv[0].c_str(), actions, &setup.attributes, pointers(argv).data(),
                    how.environment ? pointers(environment).data() : ::environ);
  ::close(input);
  ended_ = failed != 0;
  REQUIRE_MESSAGE(failed == 0, argv[0]);
}

child_process::~child_process() {
  kill();
  ::close(out_);
  ::close(err_);
}

bool child_process::reap(int flags) {
  int how = 0;
  if (::waitpid(id_, &how, flags) != id_)
    return false;
  ended_ = true;
  code_ = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
  return true;
}

std::string child_process::out() const {
  return content_of(out_, taken_);
}

std::string child_process::err() const {
  return content_of(err_);
}

std::string child_process::line() {
  std::string text;
  await("the process prints a line", [&] {
    auto alive = runs(); // asked first: what it printed before it ended is there
    text = out();
    REQUIRE_MESSAGE((alive || text.find('\n') != std::string::npos),
                    "the process ended instead of printing a line: " << text);
    return text.find('\n') != std::string::npos;
  });
  text.erase(text.find('\n'));
  taken_ += text.size() + 1;
  return text;
}

void child_process::signal(int number) const {
  REQUIRE_FALSE(ended_);
  REQUIRE(::kill(id_, number) == 0);
}

void child_process::signal_group(int number) const {
  REQUIRE_FALSE(ended_);
  REQUIRE(::kill(-id_, number) == 0);
}

void child_process::stop() const {
  signal(SIGSTOP);
  int how = 0;
  REQUIRE(::waitpid(id_, &how, WUNTRACED) == id_);
  REQUIRE(WIFSTOPPED(how));
}

void child_process::go_on() const {
  signal(SIGCONT);
}

bool child_process::runs() {
  return !ended_ && !reap(WNOHANG);
}

void child_process::kill() {
  if (ended_)
    return;
  ::kill(id_, SIGKILL);
  while (!reap(0) && errno == EINTR)
    ;
}

ending child_process::wait() {
  await("the process ends", [this] { return !runs(); });
  return {code_, out(), err()};
}

} // namespace support
