#include "support/child_process.hpp"
#include "systems.hpp"

#include <caf/event_based_actor.hpp>
#include <caf/exit_reason.hpp>
#include <caf/io/middleman.hpp>
#include <caf/response_handle.hpp>
#include <caf/send.hpp>
#include <cstdlib>
#include <doctest/doctest.h>
#include <memory>
#include <numeric>
#include <optional>
#include <sys/wait.h>
#include <thread>
#include <troupe/transport/engine.hpp>
#include <troupe/transport/middleman.hpp>

using namespace caf_backend;
using support::patience;

namespace {

/// A server process and the ports it has published.
struct server {
  explicit server(uint16_t port = 0) : process(arguments(port)) {
    auto line = process.line();
    char* end = nullptr;
    helper_port = static_cast<uint16_t>(std::strtoul(line.c_str(), &end, 10));
    adder_port = static_cast<uint16_t>(std::strtoul(end, nullptr, 10));
    REQUIRE_MESSAGE(adder_port != 0, line);
  }

  static support::launch arguments(uint16_t port) {
    support::launch how;
    how.argv = {support::this_executable(), "--serve", "--device=" + under_test().device,
                "--port=" + std::to_string(port)};
    how.captures_errors = false;
    return how;
  }

  support::child_process process;
  uint16_t helper_port = 0;
  uint16_t adder_port = 0;
};

/// A server and a client system connected to its helper.
struct fixture {
  fixture() {
    auto connected = system.middleman().remote_actor(under_test().address, remote.helper_port);
    REQUIRE_MESSAGE(connected, system.render(connected.error()));
    whom = *connected;
  }

  template <class Answer, class... Ts>
  Answer ask(const caf::actor& target, Ts&&... xs) {
    std::optional<Answer> answer;
    self->request(target, patience, std::forward<Ts>(xs)...)
        .receive([&](Answer& got) { answer = std::move(got); },
                 [&](const caf::error& e) { FAIL(system.render(e)); });
    REQUIRE(answer);
    return std::move(*answer);
  }

  server remote;
  config cfg;
  caf::actor_system system{cfg};
  caf::scoped_actor self{system};
  caf::actor whom;
};

std::vector<char> pattern(size_t size) {
  std::vector<char> bytes(size);
  uint32_t state = 12345;
  for (auto& byte : bytes) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<char>(state >> 24);
  }
  return bytes;
}

} // namespace

TEST_CASE_FIXTURE(fixture, "requests are answered") {
  CHECK(ask<int>(whom, 1, 2) == 3);
  CHECK(ask<int>(whom, -7, 7) == 0);
}

TEST_CASE_FIXTURE(fixture, "payloads of every protocol arrive whole") {
  for (size_t size : {0UL, 1UL, 255UL, 256UL, 257UL, 8000UL, 8192UL, 8193UL, 32'700UL, 32'768UL,
                      65'535UL, 65'536UL, 300'000UL, 1UL << 20, (1UL << 20) + 1, 5UL << 20}) {
    CAPTURE(size);
    auto bytes = pattern(size);
    CHECK(ask<std::vector<char>>(whom, bytes) == bytes);
  }
}

TEST_CASE_FIXTURE(fixture, "messages with several long parts arrive whole") {
  for (size_t size : {10UL, 40'000UL, 3UL << 20}) {
    CAPTURE(size);
    auto bytes = pattern(size);
    std::string text(bytes.rbegin(), bytes.rend());
    std::optional<std::vector<char>> first;
    std::optional<std::string> second;
    self->request(whom, patience, bytes, text, uint64_t{7})
        .receive(
            [&](std::vector<char>& a, std::string& b, uint64_t number) {
              first = std::move(a);
              second = std::move(b);
              CHECK(number == 7);
            },
            [&](const caf::error& e) { FAIL(system.render(e)); });
    CHECK(first == bytes);
    CHECK(second == text);
  }
}

TEST_CASE_FIXTURE(fixture, "what cannot be registered is carried by frames") {
  if (under_test().device.find("soft") != 0) {
    MESSAGE("skipped: only the soft device has few enough keys to use them all up");
    return;
  }
  auto& device = troupe::transport::middleman::of(system).loop().adapter();
  std::vector<std::byte> memory(4096);
  std::vector<std::unique_ptr<troupe::transport::memory_region>> regions;
  for (;;) {
    auto region = device.register_memory(memory, troupe::transport::access::local);
    if (!region)
      break;
    regions.push_back(std::move(*region));
    REQUIRE(regions.size() < 1'000'000);
  }
  for (size_t size : {40'000UL, 300'000UL, 3UL << 20}) {
    CAPTURE(size);
    auto bytes = pattern(size);
    CHECK(ask<uint64_t>(whom, bytes, true) == checksum(bytes));
  }
}

TEST_CASE_FIXTURE(fixture,
                  "long messages to an actor that is gone are dropped, and free their memory") {
  auto spawned = system.middleman().remote_spawn<caf::actor>(whom.node(), "helper",
                                                             caf::make_message(), patience);
  REQUIRE_MESSAGE(spawned, system.render(spawned.error()));
  self->monitor(*spawned);
  self->send(*spawned, std::string{"quit"});
  for (int i = 0; i < 5; ++i)
    self->send(*spawned, pattern(2UL << 20));
  self->receive([](caf::down_msg&) {}, caf::after(patience) >> [] { FAIL("no down message"); });
  auto bytes = pattern(100'000);
  CHECK(ask<std::vector<char>>(whom, bytes) == bytes);
}

TEST_CASE_FIXTURE(fixture, "a message of 64 MiB crosses and comes back") {
  auto bytes = pattern(64UL << 20);
  CHECK(ask<std::vector<char>>(whom, bytes) == bytes);
}

TEST_CASE_FIXTURE(fixture, "messages keep their order, short and long ones mixed") {
  constexpr uint64_t count = 5000;
  for (uint64_t i = 0; i < count; ++i) {
    self->send(whom, i);
    if (i % 500 == 0)
      self->send(whom, pattern(100'000));
  }
  CHECK(ask<uint64_t>(whom, std::string{"count"}) == count);
}

TEST_CASE_FIXTURE(fixture, "a monitor tells how a remote actor ended") {
  self->monitor(whom);
  self->send(whom, std::string{"quit"});
  std::optional<caf::error> reason;
  self->receive([&](caf::down_msg& down) { reason = down.reason; },
                caf::after(patience) >> [] { FAIL("no down message"); });
  CHECK(*reason == caf::exit_reason::user_shutdown);
  CHECK(remote.process.wait().code == 0);
}

TEST_CASE_FIXTURE(fixture, "a killed process takes its actors with it") {
  self->monitor(whom);
  auto linked = system.spawn([this](caf::event_based_actor* me) -> caf::behavior {
    me->link_to(whom);
    return {[](int) {}};
  });
  self->monitor(linked);
  CHECK(ask<int>(whom, 2, 2) ==
        4); // the monitor and the link have arrived too: messages keep their order
  remote.process.kill();
  auto downs = 0;
  for (int i = 0; i < 2; ++i)
    self->receive([&](caf::down_msg&) { ++downs; },
                  caf::after(patience) >> [] { FAIL("no down message"); });
  CHECK(downs == 2);
}

TEST_CASE_FIXTURE(fixture, "a process killed in the middle of a long message harms nobody") {
  server other;
  auto second = system.middleman().remote_actor(under_test().address, other.helper_port);
  REQUIRE(second);
  self->monitor(whom);
  for (int i = 0; i < 8; ++i)
    self->send(whom, pattern(16UL << 20));
  remote.process.kill();
  auto down = false;
  self->receive_while([&] { return !down; })(
      [&](caf::down_msg&) { down = true; }, [](std::vector<char>&) {},
      caf::after(patience) >> [] { FAIL("no down message"); });
  CHECK(ask<int>(*second, 20, 22) == 42);
}

TEST_CASE_FIXTURE(fixture, "a process killed while its long answers are read harms nobody") {
  server other;
  auto second = system.middleman().remote_actor(under_test().address, other.helper_port);
  REQUIRE(second);
  self->monitor(whom);
  for (int i = 0; i < 8; ++i)
    self->send(whom, pattern(16UL << 20));
  // Once the first is back, others are on their way in both directions.
  self->receive([](std::vector<char>& got) { CHECK(got.size() == 16UL << 20); },
                caf::after(patience) >> [] { FAIL("no answer"); });
  remote.process.kill();
  auto down = false;
  self->receive_while([&] { return !down; })(
      [&](caf::down_msg&) { down = true; },
      [](std::vector<char>& got) { CHECK(got.size() == 16UL << 20); },
      caf::after(patience) >> [] { FAIL("no down message"); });
  CHECK(ask<int>(*second, 20, 22) == 42);
}

TEST_CASE_FIXTURE(fixture, "a node that was killed is followed by another at the same address") {
  std::unique_ptr<server> current;
  for (int round = 0; round < 3; ++round) {
    self->monitor(whom);
    (current ? current->process : remote.process).kill();
    self->receive([](caf::down_msg&) {}, caf::after(patience) >> [] { FAIL("no down message"); });
    current = std::make_unique<server>(remote.helper_port);
    CHECK(current->helper_port == remote.helper_port);
    auto connected = system.middleman().remote_actor(under_test().address, remote.helper_port);
    REQUIRE_MESSAGE(connected, system.render(connected.error()));
    CHECK(connected->node() != whom.node());
    CHECK(ask<int>(*connected, 4, 5) == 9);
    whom = *connected;
  }
}

TEST_CASE("two nodes that connect to each other at the same moment reach each other") {
  for (int round = 0; round < 4; ++round) {
    CAPTURE(round);
    config configs[2];
    caf::actor_system left{configs[0]};
    caf::actor_system right{configs[1]};
    caf::actor_system* systems[] = {&left, &right};
    caf::actor helpers[] = {left.spawn(helper), right.spawn(helper)};
    uint16_t ports[2] = {};
    for (int i = 0; i < 2; ++i) {
      auto port = systems[i]->middleman().publish(helpers[i], 0, under_test().address.c_str());
      REQUIRE_MESSAGE(port, systems[i]->render(port.error()));
      ports[i] = *port;
    }
    caf::expected<caf::actor> found[] = {caf::sec::none, caf::sec::none};
    auto connect = [&](int from) {
      found[from] = systems[from]->middleman().remote_actor(under_test().address, ports[1 - from]);
    };
    std::thread other{connect, 1};
    connect(0);
    other.join();
    for (int i = 0; i < 2; ++i) {
      REQUIRE_MESSAGE(found[i], systems[i]->render(found[i].error()));
      caf::scoped_actor asks{*systems[i]};
      auto sum = 0;
      asks->request(*found[i], patience, 6, 7)
          .receive([&](int got) { sum = got; },
                   [&](const caf::error& e) { FAIL(systems[i]->render(e)); });
      CHECK(sum == 13);
    }
    for (auto& each : helpers)
      caf::anon_send_exit(each, caf::exit_reason::user_shutdown);
  }
}

TEST_CASE_FIXTURE(fixture, "typed actors check the interface") {
  auto typed = system.middleman().remote_actor<adder>(under_test().address, remote.adder_port);
  REQUIRE_MESSAGE(typed, system.render(typed.error()));
  auto sum = 0;
  self->request(*typed, patience, 40, 2)
      .receive([&](int got) { sum = got; }, [&](const caf::error& e) { FAIL(system.render(e)); });
  CHECK(sum == 42);
  using other = caf::typed_actor<caf::replies_to<std::string>::with<int>>;
  auto wrong = system.middleman().remote_actor<other>(under_test().address, remote.adder_port);
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error() == caf::sec::unexpected_actor_messaging_interface);
}

TEST_CASE_FIXTURE(fixture, "actors are spawned on the other node") {
  auto spawned = system.middleman().remote_spawn<caf::actor>(whom.node(), "helper",
                                                             caf::make_message(), patience);
  REQUIRE_MESSAGE(spawned, system.render(spawned.error()));
  CHECK(spawned->node() == whom.node());
  CHECK(ask<int>(*spawned, 5, 6) == 11);
}

TEST_CASE_FIXTURE(fixture, "an actor handle that travels can be used where it arrives") {
  // The helper echoes through a local actor: a handle goes out, the answer comes back to another
  // one.
  auto local = system.spawn(helper);
  auto port = system.middleman().publish(local, 0, under_test().address.c_str());
  REQUIRE_MESSAGE(port, system.render(port.error()));
  config second_config;
  caf::actor_system second{second_config};
  auto there = second.middleman().remote_actor(under_test().address, *port);
  REQUIRE_MESSAGE(there, second.render(there.error()));
  caf::scoped_actor asks{second};
  auto sum = 0;
  asks->request(*there, patience, 8, 9)
      .receive([&](int got) { sum = got; }, [&](const caf::error& e) { FAIL(second.render(e)); });
  CHECK(sum == 17);
  REQUIRE(system.middleman().unpublish(local, *port));
  caf::anon_send_exit(local, caf::exit_reason::user_shutdown);
}

TEST_CASE_FIXTURE(fixture, "what is no longer published cannot be reached, those connected stay") {
  auto local = system.spawn(helper);
  auto port = system.middleman().publish(local, 0, under_test().address.c_str());
  REQUIRE(port);
  config second_config;
  caf::actor_system second{second_config};
  auto there = second.middleman().remote_actor(under_test().address, *port);
  REQUIRE(there);
  REQUIRE(system.middleman().unpublish(local, *port));
  config third_config;
  caf::actor_system third{third_config};
  CHECK_FALSE(third.middleman().remote_actor(under_test().address, *port));
  caf::scoped_actor asks{second};
  auto sum = 0;
  asks->request(*there, patience, 1, 1)
      .receive([&](int got) { sum = got; }, [&](const caf::error& e) { FAIL(second.render(e)); });
  CHECK(sum == 2);
  caf::anon_send_exit(local, caf::exit_reason::user_shutdown);
}

TEST_CASE("a port that nobody listens on is an error that says so") {
  config cfg;
  caf::actor_system system{cfg};
  auto port = system.middleman().open(0, under_test().address.c_str());
  REQUIRE_MESSAGE(port, system.render(port.error()));
  REQUIRE(system.middleman().close(*port));
  auto refused = system.middleman().remote_actor(under_test().address, *port);
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == caf::sec::cannot_connect_to_node);
  auto text = system.render(refused.error());
  auto says_so = text.find("refused") != std::string::npos ||
                 text.find("nobody listens") != std::string::npos; // what soft-RoCE can tell
  CHECK_MESSAGE(says_so, text);
}

TEST_CASE("a port in use is an error that says so") {
  config cfg;
  caf::actor_system system{cfg};
  auto port = system.middleman().open(0, under_test().address.c_str());
  REQUIRE(port);
  auto again = system.middleman().open(*port, under_test().address.c_str());
  REQUIRE_FALSE(again);
  CHECK(again.error() == caf::sec::cannot_open_port);
  CHECK(system.render(again.error()).find("in use") != std::string::npos);
}

TEST_CASE("a device that is not there fails every publish with its reason, and nothing hangs") {
  config cfg;
  caf::put(cfg.content, "troupe.device", "verbs:nosuch0");
  caf::actor_system system{cfg};
  CHECK_FALSE(troupe::transport::middleman::of(system).ready());
  auto port = system.middleman().open(0);
  REQUIRE_FALSE(port);
  CHECK(system.render(port.error()).find("nosuch0") != std::string::npos);
}
