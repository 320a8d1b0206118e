// Nodes that begin, end, and refuse what is wrong.
#include "cluster.hpp"
#include "subject.hpp"

#include <arpa/inet.h>
#include <csignal>
#include <doctest/doctest.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

using namespace cluster_test;

namespace {

/// Somebody else's listening socket.
class listener {
public:
  explicit listener(const std::string& host)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in where{};
    where.sin_family = AF_INET;
    REQUIRE(::inet_pton(AF_INET, host.c_str(), &where.sin_addr) == 1);
    socklen_t length = sizeof where;
    auto address = reinterpret_cast<sockaddr*>(&where);
    REQUIRE(::bind(fd_, address, length) == 0);
    REQUIRE(::listen(fd_, 1) == 0);
    REQUIRE(::getsockname(fd_, address, &length) == 0);
    port_ = ntohs(where.sin_port);
  }
  ~listener() { ::close(fd_); }

  std::string port() const { return std::to_string(port_); }

private:
  int fd_;
  uint16_t port_ = 0;
};

} // namespace

TEST_CASE("one node in both roles is a cluster" * doctest::test_suite("essential")) {
  cluster c;
  auto& node = c.start_node({"--node-id", "alone", "--node-listen", under_test().address + ":0"});
  c.adopt_address(node);
  auto job = c.submit({"--array", "0-7"}, {"sh", "-c", "echo $TROUPE_TASK_INDEX"});
  CHECK(c.wait(job) == 0);
  CHECK(c.ask({"output", job, "--all"}) == "0\n1\n2\n3\n4\n5\n6\n7\n");
  auto nodes = c.ask_json({"nodes"});
  REQUIRE(nodes.size() == 1);
  CHECK(nodes[0]["id"] == "alone");
  CHECK(nodes[0]["address"] == c.address());
  job = c.submit({}, {"sleep", "1000"});
  c.await_running(job, 1);
  c.ask({"cancel", job});
  CHECK(c.wait(job) == 130);
  job = c.submit({}, {"sleep", "1000"});
  c.await_running(job, 1);
  node.signal(SIGTERM);
  auto how = node.wait();
  CHECK(how.code == 0);
  CHECK(how.err.find("error") == std::string::npos);
  c.await_no_tasks();
}

TEST_SUITE_BEGIN("more");

TEST_CASE("`shutdown` ends all nodes, and the tasks with them") {
  cluster c;
  auto& head = c.start_controller();
  auto& w1 = c.join_worker("w1");
  auto& w2 = c.join_worker("w2");
  auto nodes = c.ask_json({"nodes"});
  REQUIRE(nodes.size() == 3);
  CHECK(nodes[0]["id"] == "head");
  CHECK(nodes[0]["address"] == c.address());
  auto job = c.submit({"--array", "0-9"}, {"sleep", "1000"});
  c.await_running(job, 4);
  auto waiting = c.start_troupe({"wait", job});
  CHECK(c.ask({"shutdown"}) == "the cluster ends\n");
  for (auto node : {&head, &w1, &w2})
    CHECK(node->wait().code == 0);
  auto how = waiting->wait();
  CHECK(how.code == 3);
  CHECK(has(how.err, "went away"));
  c.await_no_tasks();
}

TEST_CASE("a worker that is told to end leaves, and its tasks run elsewhere") {
  cluster c;
  c.start_controller({"--scheduler-retries", "0"}); // leaving takes none
  auto& leaver = c.join_worker("w1");
  auto job = c.submit({"--array", "0-1"},
                      {"sh", "-c", "[ $TROUPE_NODE_ID = w2 ] || sleep 1000; echo done"});
  c.await_running(job, 2);
  leaver.signal(SIGTERM);
  CHECK(leaver.wait().code == 0);
  CHECK(c.task_processes("w1").empty());
  auto nodes = c.ask_json({"nodes"});
  REQUIRE(nodes.size() == 2);
  CHECK(nodes[1]["id"] == "w1");
  CHECK(nodes[1]["state"] == "left");
  CHECK(nodes[1]["cpus_granted"] == 0);
  CHECK(c.summary(job)["queued"] == 2);
  c.join_worker("w2");
  CHECK(c.wait(job) == 0);
  CHECK(c.ask({"output", job, "--all"}) == "done\ndone\n");
  CHECK(c.summary(job)["restarts"] == 2);
}

TEST_CASE("a worker waits for its controller") {
  cluster c;
  listener taken{under_test().address};
  std::string port;
  {
    listener free{under_test().address};
    port = free.port();
  }
  auto& early = c.start_node({"--node-id", "early", "--node-roles", "worker", "--node-controller",
                              under_test().address + ":" + port, "--membership-rejoin-for", "10m"});
  await("it says so",
        [&] { return early.err().find("waiting for the controller") != std::string::npos; });
  c.start_controller({}, static_cast<uint16_t>(std::stoi(port)));
  await("it joins", [&] { return !c.live_node("early").is_null(); });
  CHECK(c.wait(c.submit({}, {"true"})) == 0);
}

TEST_CASE("a worker gives up a controller that does not answer") {
  cluster c;
  auto& head = c.start_controller();
  head.signal(SIGSTOP);
  auto how = c.start_worker("w1", {"--membership-rejoin-for", "1s"}).wait();
  head.signal(SIGCONT);
  CHECK(how.code == 1);
  CHECK(has(how.err, "no controller at " + c.address()));
}

TEST_CASE("what cannot be is refused with a message of its own") {
  cluster c;
  auto refused = [&](const words& flags, int code) {
    auto how = c.start_node(flags).wait();
    CHECK(how.code == code);
    CHECK(how.err.starts_with("trouped: "));
    CHECK(how.out.empty());
    return how.err;
  };
  auto file = (c.scratch() / "node.toml").string();
  auto with_file = [&](std::string_view content) {
    write_file(file, content);
    return refused({"--config", file}, 2);
  };

  SUBCASE("an unknown key") {
    auto text = with_file("[worker]\n\ncpu = 3\n");
    CHECK(has(text, file + ":3: "));
    CHECK(has(text, "'worker.cpus'"));
  }
  SUBCASE("a value of a wrong type") {
    auto text = with_file("[worker]\ncpus = \"many\"\n");
    CHECK(has(text, file + ":2: worker.cpus must be an integer"));
  }
  SUBCASE("a value out of range") {
    CHECK(has(with_file("[worker]\nslots = 257\n"), file + ":2: worker.slots: 257"));
    auto text = refused({"--worker-cpus", "0"}, 2);
    CHECK(has(text, "--worker-cpus"));
    CHECK(has(text, "1 to 65536"));
  }
  SUBCASE("an unknown flag, a missing value, a word too many") {
    CHECK(
        has(refused({"--node-rolez", "worker"}, 2), "'--node-rolez'; did you mean '--node-roles'"));
    CHECK(has(refused({"--worker-cpu=3"}, 2), "'--worker-cpu'; did you mean '--worker-cpus'"));
    CHECK(has(refused({"extra"}, 2), "unexpected argument 'extra'"));
  }
  SUBCASE("a file that is not TOML, is not there, or is no file") {
    CHECK(has(with_file("[worker\n"), file + ":1: "));
    CHECK(has(refused({"--config", "/no/such/file"}, 2), "/no/such/file"));
    CHECK(has(refused({"--config", c.scratch().string()}, 2), c.scratch().string()));
  }
  SUBCASE("a directory for output that is not there") {
    std::vector<std::string> argv{TROUPED_PROGRAM, "--node-listen", under_test().address + ":0",
                                  "--worker-spool", "/no/such/spool"};
    auto how = process{c.launch(argv)}.wait();
    CHECK(how.code == 2);
    CHECK(has(how.err, "/no/such/spool"));
  }
  SUBCASE("a port that is in use") {
    c.start_controller();
    auto text = refused({"--node-id", "other", "--node-listen", c.address()}, 1);
    CHECK(has(text, "in use"));
    CHECK(has(text, "node.listen"));
  }
  SUBCASE("a port that somebody else uses") {
    listener other{under_test().address};
    auto text = refused({"--node-listen", under_test().address + ":" + other.port()}, 1);
    CHECK(has(text, "in use"));
    CHECK(has(text, other.port()));
  }
  SUBCASE("an address that is not of this machine") {
    auto key = (c.scratch() / "key").string();
    process{c.launch({TROUPED_PROGRAM, "--new-key", key})}.wait();
    CHECK(has(refused({"--node-listen", "203.0.113.7:4747", "--cluster-key-file", key}, 1),
              "203.0.113.7"));
  }
  SUBCASE("an unknown device") {
    auto start = [&](const std::string& device) {
      auto how = c.launch({TROUPED_PROGRAM, "--transport-device", device});
      std::erase_if(*how.environment,
                    [](auto& entry) { return entry.starts_with("TROUPE_DEVICE="); });
      return process{how}.wait();
    };
    auto how = start("verbs:nothere");
    CHECK(how.code != 0);
    CHECK(has(how.err, "nothere"));
    how = start("carrier-pigeon");
    CHECK(how.code != 0);
    CHECK(has(how.err, "carrier-pigeon"));
  }
  SUBCASE("a controller that is not there") {
    std::string port;
    {
      listener free{under_test().address};
      port = free.port();
    }
    auto& node = c.start_node({"--node-roles", "worker", "--node-controller",
                               under_test().address + ":" + port, "--membership-rejoin-for", "1s"});
    auto how = node.wait();
    CHECK(how.code == 1);
    CHECK(has(how.err, "no controller at " + under_test().address + ":" + port));
  }
  SUBCASE("a controller whose name does not resolve") {
    auto& node = c.start_node({"--node-roles", "worker", "--node-controller", "no-such.invalid:1",
                               "--membership-rejoin-for", "0s"});
    auto how = node.wait();
    CHECK(how.code == 1);
    CHECK(has(how.err, "no-such.invalid"));
  }
  SUBCASE("an id that a live node has") {
    c.start_controller();
    c.join_worker("w1");
    auto& twin = c.start_worker("w1");
    auto how = twin.wait();
    CHECK(how.code == 1);
    CHECK(has(how.err, "'w1' is taken"));
    CHECK(c.wait(c.submit({}, {"true"})) == 0); // the first one goes on
  }
}
