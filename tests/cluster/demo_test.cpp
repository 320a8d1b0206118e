// The demo leaves nothing behind, however it ends, and may run twice at once.
#include "process.hpp"
#include "subject.hpp"

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
        script_({"/bin/bash", DEMO_SCRIPT, PROGRAMS},
                surroundings({mark_, "TMPDIR=" + directory_.path().string(),
                              "TROUPE_DEVICE=" + under_test().device})) {}

  ~demo() {
    script_.kill();
    for (auto left : marked_processes(mark_)) // when the test has failed
      ::kill(left, SIGKILL);
  }
  demo(const demo&) = delete;
  demo& operator=(const demo&) = delete;

  process& script() { return script_; }

  void await_out(std::string_view text) {
    await(text, [&] { return script_.out().find(text) != std::string::npos || !script_.runs(); });
    REQUIRE(script_.runs());
  }

  /// Waits for its end, and checks what is left.
  void check_end(int code) {
    auto how = script_.wait();
    INFO(how.out);
    CHECK(how.code == code);
    CHECK(how.err == "");
    // The guardian of the worker that was killed ends by itself.
    await("no process is left", [&] { return marked_processes(mark_).empty(); });
    CHECK(std::filesystem::is_empty(directory_.path()));
  }

private:
  scratch_directory directory_;
  std::string mark_;
  process script_;
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
