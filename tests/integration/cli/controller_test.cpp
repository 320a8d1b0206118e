// `troupe` with a controller: answers, errors, and a controller that goes away.
#include "controller.hpp"
#include "program.hpp"
#include "subject.hpp"

#include <algorithm>
#include <csignal>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

using namespace cli_test;
using nlohmann::json;

namespace {

bool has(const std::string& text, std::string_view what) {
  INFO(text);
  return text.find(what) != std::string::npos;
}

/// A controller and the way to it.
struct cluster {
  controller head{device_under_test()};
  setting with{.environment = {head.variable(), "TROUPE_DEVICE=" + device_under_test()}};

  ending run(const std::vector<std::string>& words) const { return troupe(words, with); }
};

} // namespace

TEST_SUITE_BEGIN("controller");

TEST_CASE("what the controller answers is printed as a table or as JSON") {
  cluster c;
  auto nodes = c.run({"nodes"});
  CAPTURE(nodes.err);
  CHECK(nodes.code == 0);
  CHECK(nodes.out.starts_with("NODE"));
  CHECK(has(nodes.out, "worker\\n1  worker  alive"));
  CHECK(has(nodes.out, "1/4"));

  auto jobs = c.run({"jobs", "--json"});
  REQUIRE(jobs.code == 0);
  CHECK(json::parse(jobs.out)[0]["id"] == good_job);
  CHECK_FALSE(has(c.run({"jobs"}).out, "\x1b"));

  CHECK(has(c.run({"info"}).out, "head"));
  CHECK(c.run({"actors"}).out == "scheduler\nstorage\ngr\u00f6\u00dfe\n");
  CHECK(json::parse(c.run({"job", "15", "--json"}).out)["request"]["last"] == 3);
  CHECK(has(c.run({"cancel", "14"}).out, "job 14 is being cancelled: 1 task still runs"));
}

TEST_CASE("an error of the controller ends with 1 and its text") {
  cluster c;
  for (auto command : {"job", "cancel", "wait", "output"}) {
    auto how = c.run({command, "77"});
    CHECK(how.code == 1);
    CHECK(how.out.empty());
    CHECK(how.err == "troupe: there is no job 77\n");
  }
}

TEST_CASE("output is what the task wrote, byte for byte") {
  cluster c;
  auto how = c.run({"output", "12"});
  CHECK(how.code == 0);
  CHECK((how.out == known_output())); // without printing megabytes
  CHECK(c.run({"output", "12", "--stderr"}).out == "complaints\n");
  CHECK(c.run({"output", "15", "--task", "2"}).out == "task 2");
  CHECK(c.run({"output", "15", "--all"}).out == "task 1task 2task 3");

  how = c.run({"output", "15"});
  CHECK(how.code == 2);
  CHECK(has(how.err, "tasks 1 to 3"));
  how = c.run({"output", "14"});
  CHECK(how.code == 1);
  CHECK(has(how.err, "has not ended"));
  CHECK(c.run({"output", "15", "--task", "4"}).code == 1);
}

TEST_CASE("a reader that goes away ends the output quietly") {
  cluster c;
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  auto with = c.with;
  with.output = ends[1];
  program running{{"output", "12"}, with};
  ::close(ends[1]);
  char byte = 0;
  REQUIRE(::read(ends[0], &byte, 1) == 1);
  ::close(ends[0]);
  auto how = running.wait();
  CHECK(how.code == 0);
  CHECK(how.err.empty());
}

TEST_CASE("wait ends as the job did") {
  cluster c;
  auto how = c.run({"wait", "12"});
  CHECK(how.code == 0);
  CHECK(has(how.out, "job 12 succeeded"));
  how = c.run({"wait", "12", "13", "12"});
  CHECK(how.code == 3);
  CHECK(has(how.out, "exit status 3"));
  CHECK(json::parse(c.run({"wait", "13", "--json"}).out)[0]["exit_status"] == 3);
  CHECK(c.run({"wait", "-q", "12"}).out.empty());
}

TEST_CASE("submit sends the command, its surroundings and its limits") {
  cluster c;
  auto with = c.with;
  with.directory = "/usr";
  with.environment.emplace_back("FROM_CALLER=1");
  with.environment.emplace_back("CHANGED=no");
  auto how = troupe({"submit", "--name", "n", "--cpus", "2", "--mem", "1MiB", "--array", "3-5",
                     "--env", "CHANGED=a=b", "--", "echo", "--all", "a b"},
                    with);
  CHECK(how.code == 0);
  CHECK(how.out == "job 99\n");
  auto request = json::parse(c.run({"job", "99", "--json"}).out)["request"];
  CHECK(request["name"] == "n");
  CHECK(request["argv"] == json::array({"echo", "--all", "a b"}));
  CHECK(request["cwd"] == "/usr");
  CHECK(request["cpus"] == 2);
  CHECK(request["memory"] == 1024 * 1024);
  CHECK(request["is_array"] == true);
  CHECK(request["first"] == 3);
  CHECK(request["last"] == 5);
  CHECK(request["user"] != "");
  auto env = request["env"].get<std::vector<std::string>>();
  CHECK(std::count(env.begin(), env.end(), "FROM_CALLER=1") == 1);
  CHECK(std::count(env.begin(), env.end(), "CHANGED=a=b") == 1);
  CHECK(std::count(env.begin(), env.end(), "CHANGED=no") == 0);

  CHECK(
      troupe({"submit", "-q", "--clean-env", "--env", "CHANGED", "--cwd", "lib/", "--", "ls"}, with)
          .out == "99\n");
  request = json::parse(c.run({"job", "99", "--json"}).out)["request"];
  CHECK(request["env"] == json::array({"CHANGED=no"}));
  CHECK(request["cwd"] == "/usr/lib");
  CHECK(request["name"] == "ls");
  CHECK(request["is_array"] == false);

  CHECK(json::parse(troupe({"submit", "--json", "--", "ls"}, with).out)["job"] == submitted_job);
  CHECK(has(troupe({"submit", "--wait", "--", "ls"}, with).out, "job 99 succeeded"));
}

TEST_CASE("words for an actor arrive as they were typed") {
  cluster c;
  CHECK(c.run({"send", "nodes", "[a,b]", "jobs", "x y", "--", "--z"}).out ==
        "nodes|[a,b]|jobs|x y|--z\n");
  CHECK(json::parse(c.run({"send", "a", "--json"}).out)["answer"] == "a");
}

TEST_CASE("a controller that dies ends what waits for it") {
  cluster c;
  program waiting{{"wait", "14", "--progress"}, c.with};
  waiting.await_err("running");
  c.head.process().kill();
  auto how = waiting.wait();
  CHECK(how.code == 3);
  CHECK(
      has(how.err, "the controller at 127.0.0.1:" + std::to_string(c.head.port()) + " went away"));
}

TEST_CASE("Ctrl-C ends what waits, and leaves the job") {
  cluster c;
  program waiting{{"wait", "14", "--progress"}, c.with};
  waiting.await_err("running");
  waiting.signal(SIGINT);
  auto how = waiting.wait();
  CHECK(how.code == 130);
  CHECK(has(how.err, "interrupted"));
}

TEST_CASE("shutdown is answered before the controller ends") {
  cluster c;
  auto how = c.run({"shutdown"});
  CHECK(how.code == 0);
  c.head.process().wait();
  how = c.run({"nodes"});
  CHECK(how.code == 3);
  CHECK(has(how.err, "no controller at 127.0.0.1:" + std::to_string(c.head.port())));
  CHECK(has(how.err, "trouped"));
}

TEST_CASE("a file of commands uses one connection and ends with the first failure") {
  cluster c;
  auto with = c.with;
  with.input = "actors\nwait 12\nwait 13\nactors\n";
  auto how = troupe({}, with);
  CHECK(how.code == 3);
  CHECK(has(how.out, "gr\u00f6\u00dfe\njob 12 succeeded"));
  CHECK(how.out.ends_with("exit status 3\n"));
}

TEST_SUITE_END();
