// The shell on a terminal.
#include "controller.hpp"
#include "program.hpp"
#include "subject.hpp"
#include "terminal.hpp"

#include <doctest/doctest.h>
#include <filesystem>

using namespace cli_test;

namespace {

constexpr auto prompt = "troupe> ";
constexpr auto control_c = "\x03";
constexpr auto control_d = "\x04";
constexpr auto up = "\x1b[A";

} // namespace

TEST_SUITE_BEGIN("controller");

TEST_CASE("the shell runs commands, completes words and remembers lines") {
  controller head{device_under_test()};
  std::vector<std::string> environment{head.variable(), "TROUPE_DEVICE=" + device_under_test(),
                                       "LC_ALL=C.UTF-8",
                                       "XDG_STATE_HOME=" + (scratch() / "state").string()};
  {
    terminal shell{{}, environment};
    shell.expect("Connected to head at 127.0.0.1:" + std::to_string(head.port()));
    shell.expect(prompt);

    shell.type("act\t\r");
    shell.expect("scheduler\r\nstorage\r\n");
    shell.expect(prompt);

    shell.type("send st\thello\r"); // the name of an actor
    shell.expect("storage|hello\r\n");
    shell.expect(prompt);

    shell.type("send gr\u00f6\thello\r"); // more bytes than characters
    shell.expect("gr\u00f6\u00dfe|hello\r\n");
    shell.expect(prompt);

    shell.type("wait 1\t\t"); // 12 and 14
    shell.expect("12  14");
    shell.type("4\r");
    shell.expect("running");
    shell.type(control_c);
    shell.expect("interrupted");
    shell.expect(prompt);

    shell.type("half a line");
    shell.expect("half a line");
    shell.type(control_c);
    shell.expect("^C");
    shell.expect(prompt);

    shell.type("nods\r");
    shell.expect("did you mean 'nodes'?");
    shell.expect(prompt);
    shell.type("exit\r");
    CHECK(shell.wait() == 0);
  }
  auto history = scratch() / "state/troupe/history";
  REQUIRE(std::filesystem::exists(history));
  CHECK(std::filesystem::status(history).permissions() ==
        (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));

  terminal again{{}, environment};
  again.expect(prompt);
  again.type(std::string{up} + up); // exit, nods
  again.expect("nods");
  again.type("\x15"); // drop the line
  again.type(control_d);
  CHECK(again.wait() == 0);
}

TEST_CASE("the shell tells when the controller was lost, and finds it again") {
  auto head = std::make_unique<controller>(device_under_test());
  auto port = head->port();
  terminal shell{{}, {head->variable(), "TROUPE_DEVICE=" + device_under_test()}};
  shell.expect(prompt);
  shell.type("wait 14\r");
  shell.expect("running");
  head->process().kill();
  shell.expect("went away");
  shell.expect(prompt);

  shell.type("actors\r");
  shell.expect("no controller at");
  shell.expect(prompt);

  head = std::make_unique<controller>(device_under_test(), port);
  shell.type("actors\r");
  shell.expect("storage");
  shell.expect(prompt);

  head->process().kill();
  head = std::make_unique<controller>(device_under_test(), port);
  shell.type("jobs\r");
  shell.expect("connecting again");
  shell.expect("succeeded");
  shell.expect(prompt);
  shell.type(control_d);
  CHECK(shell.wait() == 0);
}

TEST_CASE("the shell starts without a controller") {
  terminal shell{{"--controller", "127.0.0.1:1", "--device", device_under_test()}};
  shell.expect("no controller at 127.0.0.1:1");
  shell.expect(prompt);
  shell.type("version\r");
  shell.expect("troupe 0.");
  shell.expect(prompt);
  shell.type(control_d);
  CHECK(shell.wait() == 0);
}

TEST_SUITE_END();
