#include "caf_rows.hpp"

#include "caf_system.hpp"

#include <caf/all.hpp>
#include <stdexcept>

namespace bench {

namespace {

constexpr size_t small_message = 64;
constexpr uint64_t credit = 250;
constexpr uint64_t window = 1000;

caf::behavior echo(caf::event_based_actor*) {
  return {[](std::vector<char>& bytes) { return std::move(bytes); }};
}

/// Acknowledges every `every`th message with the bytes it had since the last one.
caf::behavior sink(caf::event_based_actor* self, uint64_t every) {
  auto messages = std::make_shared<uint64_t>(0);
  auto bytes = std::make_shared<uint64_t>(0);
  return {[=](const std::vector<char>& message) {
    *bytes += message.size();
    if (++*messages % every == 0)
      self->send(caf::actor_cast<caf::actor>(self->current_sender()), std::exchange(*bytes, 0));
  }};
}

/// What an actor that measures has in common: it ends when the peer is lost, and says so.
struct outcome {
  measurement course;
  std::string failure;
};

void fail_when_lost(caf::event_based_actor* self, const caf::actor& peer, outcome* result) {
  self->monitor(peer);
  self->set_down_handler([self, result](const caf::down_msg& down) {
    result->failure = "the peer was lost: " + self->system().render(down.reason);
    self->quit();
  });
}

caf::behavior pinger(caf::event_based_actor* self, caf::actor peer, outcome* result) {
  fail_when_lost(self, peer, result);
  self->send(peer, std::vector<char>(small_message, 'x'));
  return {[=](std::vector<char>& bytes) {
    if (result->course.unit_done(1))
      self->send(peer, std::move(bytes));
    else
      self->quit();
  }};
}

caf::behavior flooder(caf::event_based_actor* self, caf::actor peer, outcome* result) {
  fail_when_lost(self, peer, result);
  auto send = [=](uint64_t count) {
    for (uint64_t i = 0; i < count; ++i)
      self->send(peer, std::vector<char>(small_message, 'x'));
  };
  send(window);
  return {[=](uint64_t bytes) {
    if (bytes != credit * small_message)
      result->failure = "bytes are missing";
    if (result->failure.empty() && result->course.unit_done(credit))
      send(credit);
    else
      self->quit();
  }};
}

caf::behavior thrower(caf::event_based_actor* self, caf::actor peer, outcome* result, size_t size,
                      size_t at_once) {
  fail_when_lost(self, peer, result);
  // One message, sent again and again: making a payload is not the transport's work.
  auto payload = caf::make_message(std::vector<char>(size, 'x'));
  for (size_t i = 0; i < at_once; ++i)
    self->send(peer, payload);
  return {[=](uint64_t bytes) {
    if (bytes != size)
      result->failure = "bytes are missing";
    if (result->failure.empty() && result->course.unit_done(1))
      self->send(peer, payload);
    else
      self->quit();
  }};
}

/// Starts a peer in `role`, lets `spawn(system, actor of the peer, outcome)` make the actor that
/// measures, and waits for its end.
template <class Spawn>
sample run(const context& c, const std::string& role, std::vector<std::string> arguments,
           const effort& how_long, Spawn spawn, void (*fill)(sample&, const measurement&, double),
           double factor = 1) {
  auto peer = c.start_peer(role, std::move(arguments));
  caf_config config{c};
  caf::actor_system system{config};
  auto server = connect_to(c, system, *peer);
  outcome result{measurement{how_long, peer->id()}, {}};
  {
    caf::scoped_actor self{system};
    self->wait_for(spawn(system, server, &result));
  }
  caf::anon_send_exit(server, caf::exit_reason::user_shutdown);
  if (!result.failure.empty())
    return sample::failed(result.failure);
  sample out;
  fill(out, result.course, factor);
  result.course.add_costs(out);
  return out;
}

} // namespace

int caf_serve_echo(const context& c, const std::vector<std::string>&) {
  caf_config config{c};
  caf::actor_system system{config};
  return serve_actor(c, system, system.spawn(echo));
}

int caf_serve_sink(const context& c, const std::vector<std::string>& arguments) {
  caf_config config{c};
  caf::actor_system system{config};
  return serve_actor(c, system, system.spawn(sink, std::stoull(arguments.at(0))));
}

sample caf_round_trip(const context& c) {
  return run(
      c, "caf-echo", {}, c.usual(),
      [](caf::actor_system& system, const caf::actor& peer, outcome* result) {
        return system.spawn(pinger, peer, result);
      },
      [](sample& out, const measurement& course, double) {
        out.set("median, µs", course.unit_us(0.5));
        out.set("p99, µs", course.unit_us(0.99));
      });
}

sample caf_one_way(const context& c) {
  return run(
      c, "caf-sink", {std::to_string(credit)}, c.usual(),
      [](caf::actor_system& system, const caf::actor& peer, outcome* result) {
        return system.spawn(flooder, peer, result);
      },
      [](sample& out, const measurement& course, double) {
        out.set("M msg/s", static_cast<double>(course.messages()) / course.seconds() / 1e6);
      });
}

sample caf_payload(const context& c, size_t bytes, size_t at_once) {
  return run(
      c, "caf-sink", {"1"}, c.usual(),
      [=](caf::actor_system& system, const caf::actor& peer, outcome* result) {
        return system.spawn(thrower, peer, result, bytes, at_once);
      },
      [](sample& out, const measurement& course, double size) {
        out.set("GB/s", static_cast<double>(course.messages()) * size / course.seconds() / 1e9);
      },
      static_cast<double>(bytes));
}

} // namespace bench
