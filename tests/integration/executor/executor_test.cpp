#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "executor/spool_file.hpp"
#include "support.hpp"

#include <algorithm>
#include <csignal>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fstream>
#include <random>
#include <sys/stat.h>
#include <thread>

using namespace executor_test;
namespace fs = std::filesystem;
using troupe::errc;

TEST_CASE("every exit code comes back as it was") {
  lab here;
  std::vector<uint64_t> ids;
  for (int code = 0; code < 256; ++code)
    ids.push_back(here.start({"sh", "-c", "exit " + std::to_string(code)}));
  for (int code = 0; code < 256; ++code) {
    auto& end = here.finish(ids[static_cast<size_t>(code)]).ended;
    REQUIRE(end.has_value());
    CHECK(end->exit_code == code);
    CHECK(end->signal == 0);
    CHECK_FALSE(end->lingering);
  }
  CHECK(here.runner().unfinished() == 0);
}

TEST_CASE("death by a signal is not an exit code") {
  lab here;
  for (int number : {SIGHUP, SIGINT, SIGQUIT, SIGILL, SIGABRT, SIGFPE, SIGKILL, SIGUSR1, SIGSEGV,
                     SIGPIPE, SIGALRM, SIGTERM, SIGXCPU, SIGSYS, 40}) {
    CAPTURE(number);
    auto end = here.run_script("ulimit -c 0; kill -" + std::to_string(number) + " $$; sleep 600");
    REQUIRE(end.ended.has_value());
    CHECK_FALSE(end.ended->exit_code.has_value());
    CHECK(end.ended->signal == number);
  }
}

TEST_CASE("output is captured byte for byte, errors apart from it") {
  lab here;
  auto end = here.run_script(R"(printf 'a\0b\377\n\0'; printf 'wrong: \000\001' >&2)");
  REQUIRE(end.ended.has_value());
  using namespace std::string_literals;
  CHECK(text_of(end.ended->standard_output) == "a\0b\xff\n\0"s);
  CHECK(text_of(end.ended->standard_error) == "wrong: \0\1"s);
  CHECK(end.ended->standard_output.size() == 6);

  auto silent = here.run({"true"});
  REQUIRE(silent.ended.has_value());
  CHECK(silent.ended->standard_output.size() == 0);
  CHECK(text_of(silent.ended->standard_error).empty());
}

TEST_CASE("both outputs to one file keep their order") {
  lab here;
  auto end =
      here.run_script("exec 2>&1; echo one; echo two >&2; echo three >> /dev/stdout; echo 4");
  REQUIRE(end.ended.has_value());
  CHECK(text_of(end.ended->standard_output) == "one\ntwo\nthree\n4\n");
}

TEST_CASE("eight mebibytes of random bytes come through, mapped and read in parts") {
  lab here;
  std::string content(8 << 20, '\0');
  std::mt19937 random{7};
  std::generate(content.begin(), content.end(), [&] { return static_cast<char>(random()); });
  write_file(here.scratch() / "big", content, 0600);
  auto end = here.run({"cat", (here.scratch() / "big").string()});
  REQUIRE(end.ended.has_value());
  auto& output = end.ended->standard_output;
  REQUIRE(output.size() == content.size());
  CHECK(text_of(output) == content);

  std::vector<std::byte> part(1000);
  auto view = std::string_view{content};
  REQUIRE(output.read(4'000'001, part) == 1000);
  CHECK(troupe::transport::text_of(part) == view.substr(4'000'001, 1000));
  REQUIRE(output.read(content.size() - 10, part) == 10);
  CHECK(troupe::transport::text_of(part).substr(0, 10) == view.substr(view.size() - 10));
  CHECK(output.read(content.size(), part) == 0);
  CHECK(output.read(UINT64_MAX, part) == 0);
}

TEST_CASE("the mapping outlives what it came from") {
  lab here;
  mapped_output mapped;
  {
    auto end = here.run({"echo", "still here"});
    REQUIRE(end.ended.has_value());
    auto made = end.ended->standard_output.map();
    REQUIRE(made.has_value());
    mapped = std::move(*made);
  }
  CHECK(troupe::transport::text_of(mapped.bytes()) == "still here\n");
}

TEST_CASE("a task gets exactly the environment that was asked for") {
  lab here;
  using namespace std::string_literals;
  std::vector<std::string> asked = {"B=two words", "A=", "C=line\nbreak",
                                    "D=gr\xc3\xbc\xc3\x9f\xff", "E=$HOME 'x' \"y\""};
  auto end = here.run(task_launch{0, {"/usr/bin/env", "-0"}, asked, {}});
  REQUIRE(end.ended.has_value());
  std::string expected;
  for (auto& entry : asked)
    expected += entry + '\0';
  CHECK(text_of(end.ended->standard_output) == expected);

  auto empty = here.run(task_launch{0, {"/usr/bin/env", "-0"}, {}, {}});
  REQUIRE(empty.ended.has_value());
  CHECK(text_of(empty.ended->standard_output).empty());
}

TEST_CASE("arguments arrive as they are") {
  lab here;
  std::vector<std::string> odd = {"",
                                  "two words",
                                  "'single' \"double\"",
                                  "line\nbreak",
                                  "back\\slash",
                                  "$HOME `x` *",
                                  "gr\xc3\xbc\xc3\x9f",
                                  "\xff\xfe\x80",
                                  "-n",
                                  "--"};
  std::vector<std::string> argv = {"/usr/bin/printf", "%s\\0"};
  std::string expected;
  for (auto& argument : odd) {
    argv.push_back(argument);
    expected += argument + '\0';
  }
  auto end = here.run(argv);
  REQUIRE(end.ended.has_value());
  CHECK(text_of(end.ended->standard_output) == expected);
}

TEST_CASE("the working directory") {
  lab here;
  auto inside = fs::canonical(here.scratch()) / "with space";
  fs::create_directory(inside);
  auto end = here.run(task_launch{0, {"/bin/pwd"}, here.environment(), inside.string()});
  REQUIRE(end.ended.has_value());
  CHECK(text_of(end.ended->standard_output) == inside.string() + "\n");

  auto own = here.run({"/bin/pwd"});
  REQUIRE(own.ended.has_value());
  CHECK(text_of(own.ended->standard_output) == fs::current_path().string() + "\n");
}

TEST_CASE("programs are found in the PATH of the task, relative entries from its directory") {
  lab here;
  fs::create_directory(here.scratch() / "tools");
  write_file(here.scratch() / "tools" / "greet", "#!/bin/sh\necho hello\n", 0700);
  write_file(here.scratch() / "greet", "not to be executed", 0600);
  for (auto path : {"PATH=/nowhere:tools", "PATH=:tools"}) {
    CAPTURE(path);
    auto end = here.run(task_launch{0, {"greet"}, {path}, here.scratch().string()});
    REQUIRE(end.ended.has_value());
    CHECK(text_of(end.ended->standard_output) == "hello\n");
  }
  auto by_default = here.run(task_launch{0, {"echo", "hi"}, {}, {}});
  REQUIRE(by_default.ended.has_value());
  CHECK(text_of(by_default.ended->standard_output) == "hi\n");
}

TEST_CASE("a program that cannot be started is an error with the step and the reason") {
  lab here;
  auto expect = [](const outcome& end, launch_step step, int number, errc code,
                   std::string_view text) {
    REQUIRE(end.failed.has_value());
    CHECK_FALSE(end.ended.has_value());
    CHECK(end.failed->step == step);
    CHECK(end.failed->error_number == number);
    CHECK(end.failed->reason.code() == code);
    CHECK_MESSAGE(end.failed->reason.text().find(text) != std::string::npos,
                  end.failed->reason.text());
  };
  auto file = here.scratch() / "plain";
  write_file(file, "echo never", 0600);
  expect(here.run({"no-such-program"}), launch_step::execute, ENOENT, errc::not_found,
         "cannot start 'no-such-program': executing it: No such file or directory (its PATH is "
         "'/usr/bin:/bin')");
  expect(here.run({"/no/such/program"}), launch_step::execute, ENOENT, errc::not_found,
         "No such file or directory");
  expect(here.run({file.string()}), launch_step::execute, EACCES, errc::permission_denied,
         "Permission denied");
  expect(here.run({here.scratch().string()}), launch_step::execute, EACCES, errc::permission_denied,
         "Permission denied");
  write_file(file, "echo never", 0700);
  expect(here.run({file.string()}), launch_step::execute, ENOEXEC, errc::system, "#!/bin/sh");
  expect(here.run(task_launch{0, {"true"}, here.environment(), "/gone/\xff"}),
         launch_step::directory, ENOENT, errc::not_found,
         "cannot start 'true': changing to the directory '/gone/\\xff': No such file or directory");
  expect(here.run(task_launch{0, {"true"}, here.environment(), file.string()}),
         launch_step::directory, ENOTDIR, errc::not_found, "Not a directory");
}

TEST_CASE("a large environment arrives, one above the system's limit is an error") {
  lab here;
  auto environment = here.environment();
  for (int i = 0; i < 12; ++i)
    environment.push_back("V" + std::to_string(i) + "=" + std::string(100'000, 'x'));
  auto end = here.run(task_launch{0, {"sh", "-c", "echo ${#V0} ${#V11}"}, environment, {}});
  REQUIRE(end.ended.has_value());
  CHECK(text_of(end.ended->standard_output) == "100000 100000\n");

  for (int i = 12; i < 100; ++i)
    environment.push_back("V" + std::to_string(i) + "=" + std::string(100'000, 'x'));
  auto refused = here.run(task_launch{0, {"true"}, environment, {}});
  REQUIRE(refused.failed.has_value());
  CHECK(refused.failed->step == launch_step::execute);
  CHECK(refused.failed->error_number == E2BIG);
  CHECK(refused.failed->reason.code() == errc::limit_too_low);
}

TEST_CASE("requests that make no sense are refused at once") {
  lab here;
  using namespace std::string_literals;
  auto code_of = [&](task_launch launch) {
    auto started = here.runner().start(launch);
    return started ? errc::none : started.error().code();
  };
  CHECK(code_of({1, {}, {}, {}}) == errc::invalid_argument);
  CHECK(code_of({1, {""}, {}, {}}) == errc::invalid_argument);
  CHECK(code_of({1, {"true", "a\0b"s}, {}, {}}) == errc::invalid_argument);
  CHECK(code_of({1, {"true"}, {"A=\0"s}, {}}) == errc::invalid_argument);
  CHECK(code_of({1, {"true"}, {"no equals sign"}, {}}) == errc::invalid_argument);
  CHECK(code_of({1, {"true"}, {"=x"}, {}}) == errc::invalid_argument);
  CHECK(code_of({1, {"true"}, {}, "\0"s}) == errc::invalid_argument);
  CHECK(code_of({1, {"true", std::string(65 << 20, 'x')}, {}, {}}) == errc::invalid_argument);
  CHECK(here.runner().signal(1, SIGTERM).error().code() == errc::not_found);

  auto id = here.start({"sleep", "600"});
  CHECK(code_of({id, {"true"}, {}, {}}) == errc::already_exists);
  CHECK(here.runner().signal(id, 0).error().code() == errc::invalid_argument);
  CHECK(here.runner().signal(id, 65).error().code() == errc::invalid_argument);
  REQUIRE(here.runner().signal(id, SIGTERM));
  CHECK(here.finish(id).ended->signal == SIGTERM);
  CHECK(here.runner().signal(id, SIGTERM).error().code() == errc::not_found);
}

TEST_CASE("tasks inherit no descriptor, no signal mask and no ignored signal") {
  int leaked = ::open("/dev/null", O_RDONLY); // without close-on-exec, as some libraries do
  REQUIRE(leaked >= 0);
  auto ignored_before = std::signal(SIGPIPE, SIG_IGN);
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  REQUIRE(::pthread_sigmask(SIG_BLOCK, &blocked, &before) == 0);
  {
    lab here;
    // 3 is the directory that `ls` itself reads.
    auto end = here.run({"ls", "/proc/self/fd"});
    REQUIRE(end.ended.has_value());
    CHECK(text_of(end.ended->standard_output) == "0\n1\n2\n3\n");
    auto input = here.run({"readlink", "/proc/self/fd/0"});
    REQUIRE(input.ended.has_value());
    CHECK(text_of(input.ended->standard_output) == "/dev/null\n");
    auto signals = here.run({"grep", "-E", "^Sig(Blk|Ign|Cgt)", "/proc/self/status"});
    REQUIRE(signals.ended.has_value());
    auto text = text_of(signals.ended->standard_output);
    CHECK(text.find("SigBlk:\t0000000000000000") != text.npos);
    CHECK(text.find("SigIgn:\t0000000000000000") != text.npos);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  std::signal(SIGPIPE, ignored_before);
  ::close(leaked);
}

TEST_CASE("times and memory are told") {
  lab here;
  auto end = here.run_script("i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; sleep 0.1");
  REQUIRE(end.ended.has_value());
  CHECK(end.ended->user_ns + end.ended->system_ns > 0);
  CHECK(end.ended->start_ns > 0);
  CHECK(end.ended->end_ns - end.ended->start_ns >= 100'000'000);
  CHECK(end.ended->user_ns < end.ended->end_ns - end.ended->start_ns + 1'000'000'000);
  CHECK(end.ended->max_resident > 100'000);
}

TEST_CASE("two hundred tasks, up to 64 at once") {
  lab here;
  std::map<uint64_t, int> expected;
  int next = 0;
  auto start_one = [&] {
    auto id = here.start_script("echo task " + std::to_string(next) + "; exit " +
                                std::to_string(next % 7));
    expected[id] = next++;
  };
  auto ended = [&] {
    return std::ranges::count_if(here.outcomes,
                                 [](auto& entry) { return bool{entry.second.ended}; });
  };
  while (next < 64)
    start_one();
  while (next < 200) {
    auto before = ended();
    REQUIRE(here.take_events_until([&] { return ended() > before; }));
    while (next < 200 && here.runner().unfinished() < 64)
      start_one();
  }
  REQUIRE(here.take_events_until([&] { return ended() == 200; }));
  for (auto& [id, number] : expected) {
    auto& end = *here.outcomes[id].ended;
    CHECK(end.exit_code == number % 7);
    CHECK(text_of(end.standard_output) == "task " + std::to_string(number) + "\n");
  }
}

TEST_CASE("a helper thread delivers the events") {
  lab here;
  std::map<uint64_t, int> codes;
  std::thread helper{[&] {
    here.runner().run_events([&](task_event event) {
      if (auto end = std::get_if<task_ended>(&event)) {
        codes[end->id] = end->exit_code.value_or(-1);
        if (codes.size() < 20)
          static_cast<void>(here.runner().signal(end->id, SIGTERM)); // allowed here, and harmless
        else
          here.runner().stop();
      }
    });
  }};
  std::vector<uint64_t> ids;
  for (int i = 0; i < 20; ++i)
    ids.push_back(here.start({"sh", "-c", "exit " + std::to_string(i)}));
  helper.join();
  for (int i = 0; i < 20; ++i)
    CHECK(codes[ids[static_cast<size_t>(i)]] == i);
  // Stopped before it is called: it returns at once, and the runner still works.
  here.runner().stop();
  here.runner().run_events([](task_event) {});
  CHECK(here.run({"true"}).ended->exit_code == 0);
}

TEST_CASE("output files that cannot be made are an error with the path and the remedy") {
  auto refused = task_runner::create({"/no/such/spool", {}});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().text() ==
        "cannot create an output file in /no/such/spool: No such file or directory (create that "
        "directory or choose another spool directory)");

  auto spool = std::make_unique<temporary_directory>();
  auto made = task_runner::create({spool->path(), {}});
  REQUIRE(made.has_value());
  auto path = spool->path().string();
  spool.reset();
  auto started = (*made)->start({1, {"true"}, {}, {}});
  REQUIRE_FALSE(started.has_value());
  CHECK(started.error().text().find(path) != std::string::npos);
  CHECK((*made)->unfinished() == 0);
}

TEST_CASE("a guardian that cannot be started is an error") {
  temporary_directory spool;
  auto absent = task_runner::create({spool.path(), "/no/such/guardian"});
  REQUIRE_FALSE(absent.has_value());
  CHECK(absent.error().text().find("/no/such/guardian") != std::string::npos);
  REQUIRE(::setenv("TROUPE_GUARDIAN", "/no/guardian/either", 1) == 0);
  auto named = task_runner::create({spool.path(), {}});
  ::unsetenv("TROUPE_GUARDIAN");
  REQUIRE_FALSE(named.has_value());
  CHECK(named.error().code() == errc::not_found);
  CHECK(named.error().text().find("TROUPE_GUARDIAN") != std::string::npos);
}

TEST_CASE("spool files have no name, also where the file system cannot make them so") {
  temporary_directory spool;
  for (auto open : {&open_spool_file, &open_unlinked_spool_file}) {
    auto file = open(spool.path());
    REQUIRE(file.has_value());
    CHECK(fs::is_empty(spool.path()));
    struct stat info {};
    REQUIRE(::fstat(file->get(), &info) == 0);
    CHECK(info.st_nlink == 0);
    CHECK((info.st_mode & 0777) == 0600);
    CHECK((::fcntl(file->get(), F_GETFL) & O_APPEND) != 0);
    CHECK(::fcntl(file->get(), F_GETFD) == FD_CLOEXEC);
    REQUIRE(::write(file->get(), "text", 4) == 4);
    CHECK(text_of(captured_output{std::move(*file)}) == "text");
  }
  CHECK_FALSE(open_unlinked_spool_file("/no/such/spool").has_value());
}
