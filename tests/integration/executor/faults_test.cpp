// Tasks that misbehave, and processes of ours that are killed.

#include "support.hpp"

#include <algorithm>
#include <csignal>
#include <doctest/doctest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace executor_test;
using troupe::errc;

namespace {

// Five processes: the leader, two children in its group, a daemon in a session of its own, and the
// daemon's child.
const std::string family_script = "sleep 600 & setsid -f sh -c 'sleep 600 & wait'; sleep 600; :";
constexpr size_t family_size = 5;

} // namespace

TEST_CASE("a task that ignores SIGTERM dies of SIGKILL") {
  lab here;
  auto id = here.start_script("trap '' TERM; : > \"$1/ready\"; while :; do sleep 0.05; done");
  REQUIRE(here.wait_for_file("ready"));
  REQUIRE(here.runner().signal(id, SIGTERM));
  auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds{500};
  REQUIRE(here.take_events_until([&] { return std::chrono::steady_clock::now() > end; }));
  CHECK_FALSE(here.outcomes[id].ended.has_value());
  CHECK_FALSE(here.processes().empty());
  REQUIRE(here.runner().signal(id, SIGKILL));
  CHECK(here.finish(id).ended->signal == SIGKILL);
  CHECK(here.processes().empty());
}

TEST_CASE("a signal reaches the whole group, and the task may end in its own way") {
  lab here;
  auto id = here.start_script("trap 'echo told; exit 5' TERM; sleep 600 & : > \"$1/ready\"; wait");
  REQUIRE(here.wait_for_file("ready"));
  REQUIRE(here.runner().signal(id, SIGTERM));
  auto& end = here.finish(id).ended;
  CHECK(end->exit_code == 5);
  CHECK(text_of(end->standard_output) == "told\n");
}

TEST_CASE("signals to tasks that were only just asked for are not lost") {
  lab here;
  std::vector<uint64_t> ids;
  for (int i = 0; i < 80; ++i) // more than are sent to the guardian at once
    ids.push_back(here.start({"sleep", "600"}));
  for (auto id : ids)
    REQUIRE(here.runner().signal(id, id % 2 == 0 ? SIGKILL : SIGTERM));
  for (auto id : ids)
    CHECK(here.finish(id).ended->signal == (id % 2 == 0 ? SIGKILL : SIGTERM));
}

TEST_CASE("stopping and continuing a task is not its end") {
  lab here;
  auto id = here.start_script("kill -STOP $$; exit 9");
  REQUIRE(here.take_events_until([&] { return here.outcomes[id].started; }));
  // SIGCONT before the stop has no effect, so it is repeated.
  auto& out = here.outcomes[id];
  REQUIRE(here.take_events_until([&] {
    static_cast<void>(here.runner().signal(id, SIGCONT));
    return out.ended.has_value();
  }));
  CHECK(out.ended->exit_code == 9);
}

TEST_CASE("children that outlive the task's leader are dead when its end is told") {
  lab here;
  auto end = here.run_script("sleep 600 & sleep 600 & exit 3");
  REQUIRE(end.ended.has_value());
  CHECK(here.processes().empty());
  CHECK(end.ended->exit_code == 3);
  CHECK_FALSE(end.ended->lingering);
}

TEST_CASE("daemons that left the group are dead when the task's end is told") {
  lab here;
  auto other = here.start({"sleep", "600"});
  REQUIRE(here.take_events_until([&] { return here.outcomes[other].started; }));
  auto end =
      here.run_script("setsid -f sh -c 'trap \"\" TERM HUP; sleep 600 & : > $0/ready; wait' \"$1\";"
                      "until [ -e \"$1/ready\" ]; do sleep 0.01; done; exit 4");
  REQUIRE(end.ended.has_value());
  CHECK(here.processes() == std::vector<pid_t>{here.leaders[other]});
  CHECK(end.ended->exit_code == 4);
  CHECK_FALSE(end.ended->lingering);
}

TEST_CASE("SIGKILL to a task takes its daemons with it") {
  lab here;
  auto id = here.start_script(family_script);
  REQUIRE(eventually([&] { return here.processes().size() == family_size; }));
  REQUIRE(here.runner().signal(id, SIGKILL));
  CHECK(here.finish(id).ended->signal == SIGKILL);
  CHECK(here.processes().empty());
}

TEST_CASE("the end of the runner is the end of all its tasks and their daemons") {
  lab here;
  here.start_script(family_script);
  REQUIRE(eventually([&] { return here.processes().size() == family_size; }));
  here.destroy_runner();
  CHECK(here.processes().empty());
}

TEST_CASE("kill -9 of the process that holds the runner") {
  lab here; // for its directories, and to check that nothing is left
  auto spool = here.spool().string();
  auto script = family_script;
  std::string program = HOLDER;
  std::vector<char*> argv = {program.data(), spool.data(),  script.data(),
                             script.data(),  script.data(), nullptr};
  auto environment = here.environment();
  std::vector<char*> envp;
  for (auto& entry : environment)
    envp.push_back(entry.data());
  envp.push_back(nullptr);
  pid_t holder = 0;
  REQUIRE(::posix_spawn(&holder, program.c_str(), nullptr, nullptr, argv.data(), envp.data()) == 0);
  // The holder, its guardian and their three keepers carry the mark, too.
  auto complete = eventually([&] { return here.processes().size() >= 3 * family_size + 5; });
  CHECK(complete);
  ::kill(holder, SIGKILL);
  CHECK(::waitpid(holder, nullptr, 0) == holder);
  CHECK(eventually([&] { return here.processes().empty(); }));
}

TEST_CASE("kill -9 of the guardian") {
  lab here;
  auto first = here.start_script(family_script);
  auto second = here.start({"sleep", "600"});
  auto done = here.run({"true"});
  CHECK(done.ended.has_value());
  REQUIRE(eventually([&] { return here.processes().size() == family_size + 1; }));
  ::kill(here.runner().guardian(), SIGKILL);
  REQUIRE(here.take_events_until([&] { return here.lost.has_value(); }));
  std::ranges::sort(here.lost->tasks);
  CHECK(here.lost->tasks == std::vector<uint64_t>{first, second});
  CHECK(here.lost->reason.code() == errc::disconnected);
  CHECK(here.lost->reason.text().find("was killed by signal 9") != std::string::npos);
  CHECK(eventually([&] { return here.processes().empty(); }));
  CHECK(here.runner().start({99, {"true"}, {}, {}}).error().code() == errc::disconnected);
  CHECK(here.runner().signal(first, SIGTERM).error().code() == errc::not_found);
  CHECK(here.runner().unfinished() == 0);
  CHECK(here.runner().poll().empty());
}

TEST_CASE("kill -9 of guardian and keeper at once still ends the task's group") {
  lab here;
  auto id = here.start_script("sleep 600 & : > \"$1/ready\"; wait");
  REQUIRE(here.wait_for_file("ready"));
  REQUIRE(here.take_events_until([&] { return here.outcomes[id].started; }));
  auto keeper = parent_of(here.leaders[id]);
  REQUIRE(keeper > 1);
  ::kill(here.runner().guardian(), SIGSTOP);
  ::kill(keeper, SIGKILL);
  ::kill(here.runner().guardian(), SIGKILL);
  REQUIRE(here.take_events_until([&] { return here.lost.has_value(); }));
  CHECK(here.lost->tasks == std::vector<uint64_t>{id});
  CHECK(eventually([&] { return here.processes().empty(); }));
}

TEST_CASE("kill -9 of a keeper ends its task, and only that") {
  lab here;
  auto victim = here.start_script(family_script);
  auto other = here.start({"sleep", "600"});
  REQUIRE(eventually([&] { return here.processes().size() == family_size + 1; }));
  REQUIRE(here.take_events_until(
      [&] { return here.outcomes[victim].started && here.outcomes[other].started; }));
  ::kill(parent_of(here.leaders[victim]), SIGKILL);
  auto& end = here.finish(victim).ended;
  REQUIRE(end.has_value());
  CHECK(end->signal == SIGKILL);
  CHECK(end->lingering);
  CHECK(eventually([&] { return here.processes() == std::vector<pid_t>{here.leaders[other]}; }));
  CHECK_FALSE(here.outcomes[other].ended.has_value());
}

TEST_CASE("a stopped guardian delays tasks, nothing more") {
  lab here;
  ::kill(here.runner().guardian(), SIGSTOP);
  std::vector<uint64_t> ids;
  for (int i = 0; i < 400; ++i)
    ids.push_back(here.start({"true"}));
  CHECK(here.runner().poll().empty());
  ::kill(here.runner().guardian(), SIGCONT);
  for (auto id : ids)
    CHECK(here.finish(id).ended->exit_code == 0);
}
