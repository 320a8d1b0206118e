// The demo leaves nothing behind, however it ends, and may run twice at once.
#include "subject.hpp"
#include "support/child_process.hpp"
#include "surroundings.hpp"

#include <csignal>
#include <doctest/doctest.h>
#include <filesystem>
#include <string>

using namespace cluster_test;

namespace {

class demo {
public:
  demo()
      : mark_("TROUPE_DEMO_TEST=" + directory_.path().string()),
        script_(launch({mark_, "TMPDIR=" + directory_.path().string(),
                        "TROUPE_DEVICE=" + under_test().device})) {}

  ~demo() {
    script_.kill();
    for (auto left : marked_processes(mark_)) // when the test has failed
      ::kill(left, SIGKILL);
  }
  demo(const demo&) = delete;
  demo& operator=(const demo&) = delete;

  support::child_process& script() { return script_; }

  void await_out(std::string_view text) {
    support::await(
        text, [&] { return script_.out().find(text) != std::string::npos || !script_.runs(); });
    REQUIRE(script_.runs());
  }

  /// Waits for its end, and checks what is left.
  void check_end(int code) {
    auto how = script_.wait();
    INFO(how.out);
    CHECK(how.code == code);
    CHECK(how.err == "");
    // The guardian of the worker that was killed ends by itself.
    support::await("no process is left", [&] { return marked_processes(mark_).empty(); });
    CHECK(std::filesystem::is_empty(directory_.path()));
  }

private:
  static support::launch launch(const std::vector<std::string>& variables) {
    support::launch how;
    how.argv = {"/bin/bash", DEMO_SCRIPT, PROGRAMS};
    how.environment = surroundings(variables);
    how.directory = "/";
    how.own_group = true;
    return how;
  }

  scratch_directory directory_;
  std::string mark_;
  support::child_process script_;
};

} // namespace

TEST_SUITE_BEGIN("demo");

TEST_CASE("the demo succeeds, also twice at once") {
  demo one;
  demo two;
  one.check_end(0);
  two.check_end(0);
}

TEST_CASE("the demo can be interrupted at any time") {
  for (auto moment : {"Starting", "Submitting", "Killed worker", "Comparing"}) {
    CAPTURE(moment);
    {
      demo it;
      it.await_out(moment);
      it.script().signal_group(SIGINT); // as Ctrl-C does
      it.check_end(128 + SIGINT);
    }
    demo it;
    it.await_out(moment);
    it.script().signal(SIGTERM);
    it.check_end(128 + SIGTERM);
  }
}
