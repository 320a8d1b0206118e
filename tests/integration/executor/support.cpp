#include "support.hpp"

#include <cerrno>
#include <doctest/doctest.h>
#include <fstream>
#include <iterator>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace executor_test {

namespace fs = std::filesystem;

temporary_directory::temporary_directory() {
  auto name = (fs::temp_directory_path() / "troupe-executor-XXXXXX").string();
  REQUIRE(::mkdtemp(name.data()) != nullptr);
  path_ = name;
}

temporary_directory::~temporary_directory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

bool eventually(const std::function<bool()>& condition) {
  auto end = std::chrono::steady_clock::now() + deadline;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end)
      return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
  return true;
}

std::string text_of(const captured_output& output) {
  auto mapped = output.map();
  REQUIRE(mapped.has_value());
  return std::string{troupe::transport::text_of(mapped->bytes())};
}

void write_file(const fs::path& file, std::string_view content, unsigned mode) {
  std::ofstream{file, std::ios::binary} << content;
  REQUIRE(::chmod(file.c_str(), static_cast<mode_t>(mode)) == 0);
}

pid_t parent_of(pid_t process) {
  std::ifstream file{"/proc/" + std::to_string(process) + "/status"};
  std::string word;
  while (file >> word) {
    if (word == "PPid:") {
      pid_t parent = 0;
      file >> parent;
      return parent;
    }
  }
  return 0;
}

lab::lab() : mark_("TROUPE_EXECUTOR_TEST=" + scratch_.path().string()) {
  // Orphans of a guardian that was killed come to us, so that none is left as a zombie either.
  REQUIRE(::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
  auto made = task_runner::create({spool_.path(), {}});
  REQUIRE_MESSAGE(made.has_value(), (made ? std::string{} : made.error().text()));
  runner_ = std::move(*made);
}

lab::~lab() {
  auto in_spool = fs::directory_iterator{spool_.path()} == fs::directory_iterator{};
  CHECK(in_spool);
  runner_.reset();
  CHECK(processes().empty());
  CHECK(eventually([] { return ::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD; }));
}

std::vector<std::string> lab::environment() const {
  return {"PATH=/usr/bin:/bin", mark_};
}

uint64_t lab::start(task_launch launch) {
  launch.id = ++last_id_;
  auto started = runner_->start(launch);
  REQUIRE_MESSAGE(started.has_value(), (started ? std::string{} : started.error().text()));
  return launch.id;
}

uint64_t lab::start(std::vector<std::string> argv) {
  return start(task_launch{0, std::move(argv), environment(), {}});
}

uint64_t lab::start_script(const std::string& script) {
  return start(std::vector<std::string>{"sh", "-c", script, "sh", scratch().string()});
}

bool lab::take_events_until(const std::function<bool()>& condition) {
  auto end = std::chrono::steady_clock::now() + deadline;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end)
      return false;
    pollfd ready{runner_->fd(), POLLIN, 0};
    ::poll(&ready, 1, 20);
    for (auto& event : runner_->poll()) {
      if (auto started = std::get_if<task_started>(&event)) {
        CHECK_FALSE(outcomes[started->id].started);
        outcomes[started->id].started = true;
        leaders[started->id] = started->process;
      } else if (auto failed = std::get_if<task_failed>(&event)) {
        outcomes[failed->id].failed = std::move(*failed);
      } else if (auto ended = std::get_if<task_ended>(&event)) {
        outcomes[ended->id].ended = std::move(*ended);
      } else {
        lost = std::move(std::get<guardian_lost>(event));
      }
    }
  }
  return true;
}

outcome& lab::finish(uint64_t id) {
  auto& out = outcomes[id];
  REQUIRE(take_events_until([&] { return out.failed || out.ended || lost; }));
  REQUIRE_FALSE(lost);
  CHECK(out.started != out.failed.has_value());
  return out;
}

bool lab::wait_for_file(const std::string& name) const {
  return eventually([&] { return fs::exists(scratch() / name); });
}

std::vector<pid_t> lab::processes() const {
  std::vector<pid_t> found;
  std::error_code ignored;
  for (auto& entry : fs::directory_iterator{"/proc", ignored}) {
    auto name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != name.npos)
      continue;
    // A zombie's environment is empty.
    std::ifstream file{entry.path() / "environ", std::ios::binary};
    std::string environment{std::istreambuf_iterator<char>{file}, {}};
    if (environment.find(mark_) != environment.npos)
      found.push_back(std::stoi(name));
  }
  return found;
}

} // namespace executor_test
