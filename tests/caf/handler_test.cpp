// Handlers run on the event loop, and may do there what handlers may do anywhere.
#include "support/child_process.hpp"
#include "systems.hpp"

#include <atomic>
#include <caf/event_based_actor.hpp>
#include <caf/exit_reason.hpp>
#include <caf/io/middleman.hpp>
#include <caf/send.hpp>
#include <chrono>
#include <doctest/doctest.h>
#include <thread>
#include <troupe/transport/middleman.hpp>
#include <vector>

using namespace caf_backend;
using support::patience;

namespace {

/// Blocks its thread until a remote actor has answered, as no actor should and some do.
caf::behavior blocking_relay(caf::event_based_actor* self, const caf::actor& target) {
  return {
      [self, target](int a, int b) {
        caf::scoped_actor waiter{self->system()};
        auto sum = 0;
        waiter->request(target, patience, a, b)
            .receive([&](int got) { sum = got; }, [](const caf::error&) {});
        return sum;
      },
  };
}

struct published {
  published(caf::actor_system& system, caf::actor whom) : actor(std::move(whom)) {
    auto opened = system.middleman().publish(actor, 0, under_test().address.c_str());
    REQUIRE_MESSAGE(opened, system.render(opened.error()));
    port = *opened;
  }
  ~published() { caf::anon_send_exit(actor, caf::exit_reason::user_shutdown); }

  caf::actor actor;
  uint16_t port = 0;
};

caf::actor reach(caf::actor_system& system, uint16_t port) {
  auto found = system.middleman().remote_actor(under_test().address, port);
  REQUIRE_MESSAGE(found, system.render(found.error()));
  return *found;
}

} // namespace

TEST_CASE("handlers that wait for the network do not keep it waiting") {
  config far_config;
  config middle_config;
  config near_config;
  caf::actor_system far{far_config};
  caf::actor_system middle{middle_config};
  caf::actor_system near{near_config};
  published goal{far, far.spawn(helper)};
  auto goal_seen_by_middle = reach(middle, goal.port);
  published first{middle, middle.spawn(blocking_relay, goal_seen_by_middle)};
  published second{middle, middle.spawn(blocking_relay, goal_seen_by_middle)};
  auto one = reach(near, first.port);
  auto two = reach(near, second.port);
  caf::scoped_actor self{near};
  for (int round = 0; round < 20; ++round) {
    // Both at once: the second blocks the thread that took the loop over from the first.
    self->send(one, round, 1);
    self->send(two, round, 2);
    auto total = 0;
    for (int answers = 0; answers < 2; ++answers)
      self->receive([&](int sum) { total += sum; },
                    caf::after(patience) >> [] { FAIL("no answer"); });
    REQUIRE(total == 2 * round + 3);
  }
}

TEST_CASE("an actor that takes its time keeps nobody from being answered") {
  config server_config;
  // An actor that is not admitted to the loop goes there, and would keep the only thread.
  server_config.set("scheduler.max-threads", size_t{2});
  config client_config;
  caf::actor_system server{server_config};
  caf::actor_system client{client_config};
  std::atomic<bool> release = false;
  published slow{server, server.spawn([&release](caf::event_based_actor*) -> caf::behavior {
                   return {[&release](int) {
                     while (!release)
                       std::this_thread::sleep_for(std::chrono::milliseconds{1});
                   }};
                 })};
  published quick{server, server.spawn(helper)};
  auto slow_seen = reach(client, slow.port);
  auto quick_seen = reach(client, quick.port);
  caf::scoped_actor self{client};
  self->send(slow_seen, 1);
  for (int i = 0; i < 100; ++i) {
    auto sum = -1;
    self->request(quick_seen, patience, i, i)
        .receive([&](int got) { sum = got; }, [&](const caf::error& e) { FAIL(client.render(e)); });
    CHECK(sum == 2 * i);
  }
  release = true;
}

TEST_CASE("a handler may spawn, send to, and wait for actors of its own system") {
  config server_config;
  // The one thread of CAF's scheduler is not enough for one actor that waits for another.
  server_config.set("scheduler.max-threads", size_t{2});
  config client_config;
  caf::actor_system server{server_config};
  caf::actor_system client{client_config};
  published busy{server, server.spawn([](caf::event_based_actor* self) -> caf::behavior {
                   return {[self](int a, int b) {
                     auto worker = self->spawn(helper);
                     caf::scoped_actor waiter{self->system()};
                     auto sum = 0;
                     waiter->request(worker, patience, a, b)
                         .receive([&](int got) { sum = got; }, [](const caf::error&) {});
                     self->send_exit(worker, caf::exit_reason::user_shutdown);
                     return sum;
                   }};
                 })};
  auto seen = reach(client, busy.port);
  caf::scoped_actor self{client};
  for (int i = 0; i < 10; ++i) {
    auto sum = -1;
    self->request(seen, patience, i, 1)
        .receive([&](int got) { sum = got; }, [&](const caf::error& e) { FAIL(client.render(e)); });
    CHECK(sum == i + 1);
  }
}
