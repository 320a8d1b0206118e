#include "caf_rows.hpp"

#include "caf_message_rows.hpp"
#include "caf_system.hpp"

#include <caf/all.hpp>

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

/// Waits for an actor that fills `result`. @returns the failure, or an empty sample.
sample wait_for(caf_client& client, const caf::actor& whom, const outcome& result) {
  caf::scoped_actor self{client.system()};
  self->wait_for(whom);
  return result.failure.empty() ? sample{} : sample::failed(result.failure);
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

sample ping(caf_client& client, const effort& how_long) {
  outcome result{measurement{how_long, client.peer()}, {}};
  auto out = wait_for(client, client.system().spawn(pinger, client.server(), &result), result);
  if (out.failure.empty()) {
    result.course.add_latency(out);
    result.course.add_costs(out);
  }
  return out;
}

sample caf_round_trip(const context& c) {
  caf_client client{c, "caf-echo"};
  return ping(client, c.usual());
}

sample caf_one_way(const context& c) {
  caf_client client{c, "caf-sink", {std::to_string(credit)}};
  outcome result{measurement{c.usual(), client.peer()}, {}};
  auto out = wait_for(client, client.system().spawn(flooder, client.server(), &result), result);
  if (out.failure.empty()) {
    result.course.add_rate(out);
    result.course.add_costs(out);
  }
  return out;
}

sample caf_payload(const context& c, size_t bytes, size_t at_once) {
  caf_client client{c, "caf-sink", {"1"}};
  outcome result{measurement{c.usual(), client.peer()}, {}};
  auto out = wait_for(
      client, client.system().spawn(thrower, client.server(), &result, bytes, at_once), result);
  if (out.failure.empty()) {
    result.course.add_throughput(out, bytes);
    result.course.add_costs(out);
  }
  return out;
}

} // namespace bench
