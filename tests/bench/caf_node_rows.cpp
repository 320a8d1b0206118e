#include "caf_message_rows.hpp"
#include "caf_rows.hpp"
#include "caf_system.hpp"

#include <algorithm>
#include <caf/all.hpp>
#include <cstdio>
#include <ctime>
#include <stdexcept>
#include <thread>
#include <unistd.h>

namespace bench {

namespace {

constexpr std::chrono::seconds start_limit{60};

double microseconds(std::chrono::nanoseconds t) {
  return std::chrono::duration<double, std::micro>(t).count();
}

void sleep_until(std::chrono::steady_clock::time_point when) {
  auto since = when.time_since_epoch();
  auto whole = std::chrono::duration_cast<std::chrono::seconds>(since);
  timespec at{whole.count(), std::chrono::nanoseconds{since - whole}.count()};
  ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr);
}

/// Calls `action` `times` times, every 100 µs.
template <class Action>
void pace(uint64_t times, Action action) {
  auto next = std::chrono::steady_clock::now();
  for (uint64_t i = 0; i < times; ++i) {
    next += std::chrono::microseconds{100};
    sleep_until(next);
    action();
  }
}

} // namespace

int caf_serve_idler(const context& c, const std::vector<std::string>& arguments) {
  caf_config config{c};
  caf::actor_system system{config};
  auto hub = connect_to(c, system, arguments.at(0));
  std::puts("connected");
  std::fflush(stdout);
  for (;;)
    ::pause(); // until killed
}

sample caf_idle_peers(const context& c) {
  const size_t idle = c.quick ? 3 : 63;
  caf_client client{c, "caf-echo"};
  auto alone = ping(client, c.usual());
  process_meter hub{client.peer()};
  auto before = hub.resident();
  std::vector<std::unique_ptr<child>> idlers;
  for (size_t i = 0; i < idle; ++i)
    idlers.push_back(c.start_peer("caf-idler", {client.port()}));
  for (auto& each : idlers)
    each->line(start_limit);
  auto grown = hub.resident() - before;
  auto crowded = ping(client, c.usual());
  for (auto* each : {&alone, &crowded})
    if (!each->failure.empty())
      return *each;
  auto value = [](const sample& from, const std::string& name) {
    for (auto& [its_name, number] : from.values)
      if (its_name == name)
        return number;
    throw std::logic_error{"no value " + name};
  };
  sample out;
  out.set("CPU per message, growth factor",
          value(crowded, "CPU per message, µs") / value(alone, "CPU per message, µs"));
  out.set("round trip without, µs", value(alone, "median, µs"));
  out.set("round trip beside them, µs", value(crowded, "median, µs"));
  out.set("KiB per idle connection", static_cast<double>(grown) / static_cast<double>(idle) / 1024);
  return out;
}

sample caf_paced(const context& c) {
  const uint64_t messages = c.quick ? 50 : 10000;
  caf_client client{c, "caf-sink", {std::to_string(messages)}};
  caf::scoped_actor self{client.system()};
  process_meter ours{::getpid()};
  process_meter theirs{client.peer()};
  auto used = [&] { return ours.processor_time() + theirs.processor_time(); };
  auto begin = used();
  pace(messages, [] {});
  auto pacing = used() - begin;
  begin = used();
  pace(messages, [&] { self->send(client.server(), std::vector<char>(64, 'x')); });
  std::string failure;
  self->receive([](uint64_t) {}, caf::after(start_limit) >> [&] { failure = "no answer"; });
  auto total = used() - begin;
  if (!failure.empty())
    return sample::failed(failure);
  sample out;
  out.set("CPU per message, µs",
          microseconds(std::max(total, pacing) - pacing) / static_cast<double>(messages));
  return out;
}

sample caf_idle_node(const context& c) {
  caf_client client{c, "caf-echo"};
  process_meter ours{::getpid()};
  process_meter theirs{client.peer()};
  const std::chrono::milliseconds settle{c.quick ? 10 : 500};
  const std::chrono::milliseconds measured{c.quick ? 100 : 3000};
  std::this_thread::sleep_for(settle);
  auto used = [&] { return ours.processor_time() + theirs.processor_time(); };
  auto began = std::chrono::steady_clock::now();
  auto before = used();
  std::this_thread::sleep_for(measured);
  auto spent = used() - before;
  auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  sample out;
  out.set("CPU of both nodes, µs per s", microseconds(spent) / seconds);
  return out;
}

sample caf_connect(const context& c) {
  const size_t times = c.quick ? 2 : 15;
  auto peer = c.start_peer("caf-echo", {});
  auto port = peer->line(start_limit);
  std::vector<double> took;
  for (size_t i = 0; i < times; ++i) {
    caf_config config{c};
    caf::actor_system system{config};
    auto began = std::chrono::steady_clock::now();
    auto server = connect_to(c, system, port);
    took.push_back(microseconds(std::chrono::steady_clock::now() - began));
  }
  std::sort(took.begin(), took.end());
  sample out;
  out.set("median, µs", took[took.size() / 2]);
  return out;
}

} // namespace bench
