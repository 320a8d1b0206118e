#include "cluster.hpp"

#include "subject.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <doctest/doctest.h>
#include <exception>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cluster_test {

namespace fs = std::filesystem;

namespace {

void append(words& to, const words& more) {
  to.insert(to.end(), more.begin(), more.end());
}

bool contains(const words& flags, std::string_view flag) {
  return std::find(flags.begin(), flags.end(), flag) != flags.end();
}

} // namespace

cluster::cluster() : mark_("TROUPE_CLUSTER_TEST=" + scratch_.path().string()) {
  // Orphans of nodes that were killed come to us, so that none is left as a zombie either.
  REQUIRE(::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
}

cluster::~cluster() {
  auto failing = std::uncaught_exceptions() > 0;
  if (failing)
    for (auto& node : nodes_)
      std::printf("-- trouped, process %d:\n%s%s", static_cast<int>(node->id()),
                  node->out().c_str(), node->err().c_str());
  try {
    clear();
    auto in_spool = std::distance(fs::directory_iterator{spool_.path()}, {});
    if (!failing)
      CHECK(in_spool == 0);
  } catch (...) {
    // The test has failed already, or a check above says so.
  }
}

void cluster::clear() {
  nodes_.clear();
  await("no process is left", [&] { return marked_processes(mark_).empty(); });
  await("all children are reaped",
        [] { return ::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD; });
}

process& cluster::start_node(const words& flags) {
  words argv{TROUPED_PROGRAM};
  append(argv, flags);
  append(argv, {"--worker-spool", spool_.path().string()});
  nodes_.push_back(std::make_unique<process>(launch(std::move(argv))));
  return *nodes_.back();
}

process& cluster::start_controller(const words& flags, uint16_t port) {
  words all{"--node-id",  "head",          "--node-roles",
            "controller", "--node-listen", under_test().address + ":" + std::to_string(port)};
  append(all, flags);
  // A machine that is only slow is none of the faults that are tested here.
  if (!contains(flags, "--membership-lease"))
    append(all, {"--membership-lease", "30s"});
  auto& node = start_node(all);
  adopt_address(node);
  return node;
}

void cluster::adopt_address(const process& node) {
  constexpr std::string_view announcement = "listening on ";
  await("the controller listens", [&] {
    auto text = node.out();
    auto at = text.find(announcement);
    auto end = text.find('\n', at);
    if (at == std::string::npos || end == std::string::npos)
      return false;
    at += announcement.size();
    address_ = text.substr(at, end - at);
    return true;
  });
}

uint16_t cluster::port() const {
  return static_cast<uint16_t>(std::stoul(address_.substr(address_.rfind(':') + 1)));
}

process& cluster::start_worker(const std::string& id, const words& flags) {
  words all{"--node-id", id, "--node-roles", "worker", "--node-controller", address_};
  append(all, flags);
  if (!contains(flags, "--worker-cpus"))
    append(all, {"--worker-cpus", "2"});
  return start_node(all);
}

process& cluster::join_worker(const std::string& id, const words& flags) {
  auto& node = start_worker(id, flags);
  await("worker " + id + " joins", [&] { return !live_node(id).is_null(); });
  return node;
}

std::vector<std::string> cluster::environment() const {
  std::vector<std::string> entries{mark_, "TROUPE_DEVICE=" + under_test().device,
                                   "HOME=" + scratch().string(), "TERM=dumb"};
  if (!address_.empty())
    entries.push_back("TROUPE_CONTROLLER=" + address_);
  if (auto key = std::getenv("TROUPE_KEY_FILE"))
    entries.push_back("TROUPE_KEY_FILE=" + std::string{key});
  return surroundings(entries);
}

support::launch cluster::launch(words argv, const fs::path& directory) const {
  support::launch how;
  how.argv = std::move(argv);
  how.environment = environment();
  how.directory = directory;
  how.own_group = true;
  return how;
}

std::unique_ptr<process> cluster::start_troupe(const words& arguments) const {
  words argv{TROUPE_PROGRAM};
  append(argv, arguments);
  return std::make_unique<process>(launch(std::move(argv), scratch()));
}

ending cluster::troupe(const words& arguments) const {
  return start_troupe(arguments)->wait();
}

std::string cluster::ask(const words& arguments) const {
  auto how = troupe(arguments);
  INFO("troupe ", arguments.front(), ": ", how.err);
  REQUIRE(how.code == 0);
  CHECK(how.err.empty());
  return how.out;
}

json cluster::ask_json(words arguments) const {
  arguments.emplace_back("--json");
  return json::parse(ask(arguments));
}

std::string cluster::submit(const words& options, const words& command) const {
  words all{"submit", "--quiet"};
  append(all, options);
  all.emplace_back("--");
  append(all, command);
  auto id = ask(all);
  REQUIRE(id.ends_with('\n'));
  id.pop_back();
  return id;
}

int cluster::wait(const std::string& job) const {
  auto how = troupe({"wait", job});
  INFO(how.out, how.err);
  CHECK(how.err.empty());
  return how.code;
}

std::string cluster::output(const std::string& job, int task) const {
  return ask({"output", job, "--task", std::to_string(task)});
}

std::string cluster::errors(const std::string& job, int task) const {
  return ask({"output", job, "--stderr", "--task", std::to_string(task)});
}

json cluster::summary(const std::string& job) const {
  return ask_json({"job", job})["summary"];
}

json cluster::tasks(const std::string& job) const {
  return ask_json({"job", job})["tasks"];
}

json cluster::live_node(const std::string& id) const {
  for (auto& node : ask_json({"nodes"}))
    if (node["id"] == id && !node["path"].get<std::string>().empty())
      return node;
  return nullptr;
}

void cluster::await_running(const std::string& job, uint64_t count) const {
  await("tasks run", [&] {
    return summary(job)["running"] == count &&
           marked_processes(mark_, "TROUPE_JOB_ID=" + job).size() >= count;
  });
}

std::vector<pid_t> cluster::task_processes(const std::string& node) const {
  return marked_processes(mark_, node.empty() ? "TROUPE_TASK_INDEX=" : "TROUPE_NODE_ID=" + node);
}

void cluster::await_no_tasks(const std::string& node) const {
  await("the processes of tasks are gone", [&] { return task_processes(node).empty(); });
}

bool has(const std::string& text, std::string_view what) {
  auto found = text.find(what) != std::string::npos;
  if (!found)
    MESSAGE("there is no '" << std::string{what} << "' in: " << text);
  return found;
}

} // namespace cluster_test
