// Tasks on a lease: it is extended, ends, and ends while nobody looks.

#include "support.hpp"

#include <csignal>
#include <doctest/doctest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace executor_test;
using namespace std::chrono_literals;
using troupe::errc;

namespace {

void lease_for(lab& here, std::chrono::milliseconds length) {
  REQUIRE(here.runner().extend_lease(boot_clock::now() + length));
}

} // namespace

TEST_CASE("when the lease ends the tasks are killed, which is not told as their end") {
  lab here;
  CHECK(here.run({"true"}).ended->exit_code == 0);
  lease_for(here, 1s);
  auto family = here.start_script("setsid -f sleep 600; trap '' TERM; sleep 600 & wait");
  auto other = here.start({"sleep", "600"});
  REQUIRE(here.take_events_until([&] { return here.lost.has_value(); }));
  CHECK(here.processes().empty());
  CHECK(here.lost->tasks.size() == 2);
  CHECK(here.lost->reason.code() == errc::timeout);
  CHECK(here.lost->reason.text().find("the lease of the 2 tasks") != std::string::npos);
  for (auto id : {family, other}) {
    CHECK_FALSE(here.outcomes[id].ended.has_value());
    CHECK_FALSE(here.outcomes[id].failed.has_value());
  }
  CHECK(here.runner().extend_lease(boot_clock::now() + 1h).error().code() == errc::disconnected);
  CHECK(here.runner().start({99, {"true"}, {}, {}}).error().code() == errc::disconnected);
}

TEST_CASE("a lease that is extended goes on, and cannot be shortened") {
  lab here;
  lease_for(here, 2s);
  auto id = here.start_script("until [ -e \"$1/go\" ]; do sleep 0.05; done; exit 7");
  lease_for(here, 1h);
  lease_for(here, 1ms);
  std::this_thread::sleep_for(2500ms);
  write_file(here.scratch() / "go", "", 0600);
  CHECK(here.finish(id).ended->exit_code == 7);
}

TEST_CASE("a lease that ends while no task runs ends nothing") {
  lab here;
  CHECK(here.run({"true"}).ended->exit_code == 0);
  lease_for(here, 300ms);
  std::this_thread::sleep_for(600ms);
  CHECK(here.runner().poll().empty());
  lease_for(here, 1h);
  CHECK(here.run({"true"}).ended->exit_code == 0);
}

TEST_CASE("nothing starts when the lease is over") {
  lab here;
  lease_for(here, 1s);
  CHECK(here.run({"true"}).ended->exit_code == 0);
  ::kill(here.runner().guardian(), SIGSTOP);
  here.start_script(": > \"$1/started\"");
  std::this_thread::sleep_for(1200ms);
  ::kill(here.runner().guardian(), SIGCONT);
  REQUIRE(here.take_events_until([&] { return here.lost.has_value(); }));
  CHECK_FALSE(std::filesystem::exists(here.scratch() / "started"));
}

TEST_CASE("SIGSTOP of the process that holds the runner: its tasks die with their lease") {
  lab here;
  auto spool = here.spool().string();
  std::string script = "setsid -f sleep 600; sleep 600 & wait";
  std::string program = HOLDER;
  std::vector<char*> argv = {program.data(), spool.data(), script.data(), script.data(), nullptr};
  auto environment = here.environment();
  environment.emplace_back("HOLDER_LEASE_MS=3000");
  std::vector<char*> envp;
  for (auto& entry : environment)
    envp.push_back(entry.data());
  envp.push_back(nullptr);
  pid_t holder = 0;
  REQUIRE(::posix_spawn(&holder, program.c_str(), nullptr, nullptr, argv.data(), envp.data()) == 0);
  // Besides the tasks' three processes each: the holder, its guardian and the two keepers.
  constexpr size_t all = 3 * 2 + 4;
  CHECK(eventually([&] { return here.processes().size() == all; }));
  std::this_thread::sleep_for(3500ms); // it is extended as long as the holder runs
  CHECK(here.processes().size() == all);
  ::kill(holder, SIGSTOP);
  CHECK(eventually([&] { return here.processes() == std::vector<pid_t>{holder}; }));
  ::kill(holder, SIGKILL);
  CHECK(::waitpid(holder, nullptr, 0) == holder);
}
