#include "handler_budget.hpp"
#include "loop_role.hpp"
#include "spin_policy.hpp"

#include <atomic>
#include <chrono>
#include <doctest/doctest.h>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using troupe::transport::handler_budget;
using troupe::transport::loop_role;
using troupe::transport::spin_policy;

namespace {

constexpr handler_budget::time_point start{};

handler_budget budget() {
  return handler_budget{
      {.turn = 100us, .all = 150us, .first_penalty = 1ms, .longest_penalty = 4ms}};
}

} // namespace

TEST_CASE("quick handlers run on the loop until the network must have its turn") {
  auto handlers = budget();
  CHECK(handlers.admits(1, start));
  handlers.ran(1, 90us, start);
  CHECK(handlers.admits(2, start));
  handlers.ran(2, 60us, start);
  CHECK_FALSE(handlers.admits(3, start));
  handlers.begin_turn();
  CHECK(handlers.admits(3, start));
}

TEST_CASE(
    "an actor that takes long is kept away, longer each time, and forgotten when it behaves") {
  auto handlers = budget();
  handlers.ran(1, 101us, start);
  handlers.begin_turn();
  CHECK_FALSE(handlers.admits(1, start + 999us));
  CHECK(handlers.admits(2, start));
  CHECK(handlers.admits(1, start + 1ms));
  handlers.ran(1, 101us, start + 1ms); // again: 2 ms
  handlers.begin_turn();
  CHECK_FALSE(handlers.admits(1, start + 2999us));
  CHECK(handlers.admits(1, start + 3ms));
  handlers.ran(1, 1us, start + 5ms); // good for as long as it was kept away
  handlers.ran(1, 101us, start + 6ms);
  handlers.begin_turn();
  CHECK_FALSE(handlers.admits(1, start + 6999us));
  CHECK(handlers.admits(1, start + 7ms));
}

TEST_CASE(
    "the longest penalty is the longest, and the one for a handler that had to be left behind") {
  auto handlers = budget();
  for (int i = 0; i < 20; ++i)
    handlers.ran(1, 1s, start);
  handlers.overran(2, start);
  handlers.begin_turn();
  for (uint64_t actor : {1U, 2U}) {
    CHECK_FALSE(handlers.admits(actor, start + 3999us));
    CHECK(handlers.admits(actor, start + 4ms));
  }
}

TEST_CASE("the loop spins only while that pays, and tries again now and then") {
  spin_policy never{0ns};
  spin_policy some{10us};
  never.slept(1us);
  CHECK(never.next() == 0ns);
  some.slept(50us); // longer than the window: spinning would have been in vain
  CHECK(some.next() == 0ns);
  some.slept(5us);
  CHECK(some.next() == 10us);
  some.in_vain();
  CHECK(some.next() == 0ns);
  auto trials = 0;
  for (int i = 0; i < 1000; ++i)
    trials += some.next() > 0ns ? 1 : 0;
  CHECK(trials > 5);
  CHECK(trials < 50);
}

TEST_CASE("the loop stays with a thread whose handlers return") {
  loop_role role{10ms};
  role.claim();
  std::thread other{[&] { CHECK_FALSE(role.stand_by()); }};
  while (role.unwatched())
    std::this_thread::yield();
  for (int i = 0; i < 1000; ++i) {
    auto step = role.enter_handler();
    CHECK(role.leave_handler(step));
  }
  CHECK(role.mine());
  role.close();
  other.join();
}

TEST_CASE("a handler that does not return loses the loop to exactly one of those who stand by") {
  loop_role role{1ms};
  role.claim();
  std::atomic<int> taken = 0;
  std::atomic<bool> done = false;
  std::vector<std::thread> others;
  for (int i = 0; i < 3; ++i)
    others.emplace_back([&] {
      if (!role.stand_by())
        return;
      CHECK(role.mine());
      ++taken;
      while (!done)
        std::this_thread::yield();
      role.close();
    });
  while (role.unwatched())
    std::this_thread::yield();
  auto step = role.enter_handler();
  while (taken == 0)
    std::this_thread::yield();
  CHECK_FALSE(role.leave_handler(step));
  CHECK_FALSE(role.mine());
  done = true;
  CHECK_FALSE(role.stand_by());
  for (auto& each : others)
    each.join();
  CHECK(taken == 1);
}

TEST_CASE("the watcher wakes for a handler after a long rest") {
  loop_role role{1ms};
  role.claim();
  std::thread other{[&] { CHECK(role.stand_by()); }};
  std::this_thread::sleep_for(
      50ms); // long enough for it to doze; should it not, the test holds all the same
  auto step = role.enter_handler();
  other.join();
  CHECK_FALSE(role.leave_handler(step));
}
