#include "systems.hpp"

#include <caf/event_based_actor.hpp>
#include <caf/exit_reason.hpp>
#include <caf/io/middleman.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <cstdio>
#include <memory>
#include <troupe/transport/middleman.hpp>

namespace caf_backend {

subject& under_test() {
  static subject chosen;
  return chosen;
}

config::config() {
  load<troupe::transport::middleman>();
  caf::put(content, "troupe.device", under_test().device);
  set("scheduler.policy", caf::atom("sharing"));
  set("scheduler.max-threads", size_t{1});
  // Emulated guests are slow; time-outs must not be what a test sees.
  caf::put(content, "troupe.connect-timeout", caf::timespan{std::chrono::seconds{30}});
  add_actor_type("helper", helper);
}

uint64_t checksum(const std::vector<char>& bytes) {
  uint64_t sum = 14695981039346656037U; // FNV-1a
  for (auto each : bytes)
    sum = (sum ^ static_cast<uint8_t>(each)) * 1099511628211U;
  return sum;
}

caf::behavior helper(caf::event_based_actor* self) {
  auto expected = std::make_shared<uint64_t>(0);
  return {
      [](int a, int b) { return a + b; },
      [](std::vector<char>& bytes) { return std::move(bytes); },
      [](const std::vector<char>& bytes, bool) { return checksum(bytes); },
      [](std::vector<char>& bytes, std::string& text, uint64_t number) {
        return caf::make_message(std::move(bytes), std::move(text), number);
      },
      [expected](uint64_t number) {
        if (number == *expected)
          ++*expected;
      },
      [self, expected](const std::string& command) -> caf::result<uint64_t> {
        if (command == "quit")
          self->quit(caf::exit_reason::user_shutdown);
        return *expected;
      },
  };
}

int serve(uint16_t port) {
  config cfg;
  caf::actor_system system{cfg};
  auto whom = system.spawn(helper);
  auto typed =
      system.spawn([]() -> adder::behavior_type { return {[](int a, int b) { return a + b; }}; });
  auto helper_port = system.middleman().publish(whom, port, under_test().address.c_str());
  auto adder_port = system.middleman().publish(typed, 0, under_test().address.c_str());
  if (!helper_port || !adder_port) {
    std::printf("error %s\n",
                system.render(helper_port ? adder_port.error() : helper_port.error()).c_str());
    return 1;
  }
  std::printf("%d %d\n", int{*helper_port}, int{*adder_port});
  std::fflush(stdout);
  caf::scoped_actor self{system};
  self->wait_for(whom);
  // A system waits for all of its actors.
  caf::anon_send_exit(typed, caf::exit_reason::user_shutdown);
  return 0;
}

} // namespace caf_backend
