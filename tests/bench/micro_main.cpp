// bench_micro LEVEL COUNT [BYTES]: COUNT round trips of BYTES (default 64) in one process, always
// the same work, so that runs can be compared by the instructions that they take. `instructions`
// counts them. Levels, each including those above it:
//   device   two soft devices: a posted send, its completion, the peer's receive, and back
//   channel  two channels on an engine each, driven in turns by one thread
//   caf      two actor systems; plus their threads, so that counts vary by some percent
//   caf-tcp  the same with CAF's own middleman, to compare with
#include "caf_system.hpp"
#include "row.hpp"

#include <caf/all.hpp>
#include <caf/io/middleman.hpp>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <stdexcept>
#include <troupe/transport/channel.hpp>
#include <troupe/transport/open_device.hpp>

namespace {

using namespace troupe;
using namespace troupe::transport;

constexpr std::chrono::seconds patience{60};

template <class T>
T value_or_throw(result<T> made) {
  if (!made)
    throw std::runtime_error{made.error().text()};
  return std::move(*made);
}

void check(const status& how) {
  if (!how)
    throw std::runtime_error{how.error().text()};
}

// -- device ---------------------------------------------------------------------------------------

/// One end of a connection between two devices.
struct device_end {
  std::unique_ptr<device> opened = std::move(value_or_throw(open_device("soft")).opened);
  std::unique_ptr<completion_queue> completions =
      value_or_throw(opened->create_completion_queue(256));
  std::unique_ptr<memory_region> memory;
  std::unique_ptr<queue_pair> pair;
  std::deque<connection_event> events;

  queue_pair_config queues() const { return {completions.get(), 64, 64}; }
  local_slice all() const { return {memory.get(), 0, memory->size()}; }

  void turn() {
    std::array<completion, 1> none;
    completions->poll(none);
    if (auto found = opened->next_event())
      events.push_back(std::move(*found));
  }

  /// Waits for the next event, which is of `kind`, letting `other` go on.
  connection_event event(connection_event::kind kind, device_end& other) {
    while (events.empty()) {
      turn();
      other.turn();
    }
    auto first = std::move(events.front());
    events.pop_front();
    if (first.what != kind)
      throw std::runtime_error{"no connection: " + first.reason.text()};
    return first;
  }

  void post_receive() { check(pair->post_receive(1, all())); }

  void send() {
    work_request work;
    work.op = opcode::send;
    work.local = all();
    check(pair->post(work));
  }

  /// Polls until a message has arrived; completions of sends pass by.
  void receive(device_end& other) {
    std::array<completion, 16> done;
    for (;;) {
      auto count = completions->poll(done);
      for (size_t i = 0; i < count; ++i) {
        if (done[i].status != errc::none)
          throw std::runtime_error{"a piece of work failed"};
        if (done[i].op == opcode::receive)
          return;
      }
      if (count == 0) { // the other side may have to move it
        count = other.completions->poll(done);
        for (size_t i = 0; i < count; ++i)
          if (done[i].op == opcode::receive)
            throw std::logic_error{"a message out of turn"};
      }
    }
  }
};

void device_level(uint64_t count, size_t bytes) {
  device_end here;
  device_end there;
  auto port = value_or_throw(there.opened->listen({"127.0.0.1", 0}));
  here.pair = value_or_throw(here.opened->connect(port->local(), here.queues(), {}, patience));
  there.pair = value_or_throw(
      there.event(connection_event::kind::requested, here).request->accept(there.queues(), {}));
  here.event(connection_event::kind::established, there);
  there.event(connection_event::kind::established, here);
  for (auto* each : {&here, &there}) {
    each->memory = value_or_throw(each->opened->allocate(bytes, access::local));
    each->post_receive();
  }
  for (uint64_t i = 0; i < count; ++i) {
    here.send();
    there.receive(here);
    there.post_receive();
    there.send();
    here.receive(there);
    here.post_receive();
  }
}

// -- channel --------------------------------------------------------------------------------------

/// Reads messages of a fixed size.
struct counting_reader : channel::reader {
  explicit counting_reader(size_t bytes) : buffer(bytes) {}
  byte_span next_buffer() override { return std::as_writable_bytes(std::span{buffer}); }
  void on_filled() override { ++messages; }
  void on_end(const error& reason) override { throw std::runtime_error{reason.text()}; }

  std::vector<char> buffer;
  uint64_t messages = 0;
};

void channel_level(uint64_t count, size_t bytes) {
  auto here = value_or_throw(engine::open("soft"));
  auto there = value_or_throw(engine::open("soft"));
  counting_reader at_client{bytes};
  counting_reader at_server{bytes};
  auto fail = [](const error& how) {
    if (how)
      throw std::runtime_error{how.text()};
  };
  std::unique_ptr<channel> server;
  auto port = value_or_throw(there->listen({"127.0.0.1", 0}, [&](auto request) {
    auto whom = there->admission().admit(*request);
    if (!whom)
      throw std::runtime_error{"this process is not let in by itself"};
    server = value_or_throw(channel::accept(*there, *request, *whom, {}, fail));
    server->read_with(at_server);
  }));
  auto client = value_or_throw(channel::connect(*here, port->local(), {}, patience, fail));
  client->read_with(at_client);
  auto exchange = [&](channel& from, counting_reader& to) {
    std::vector<char> message(bytes, 'x');
    auto before = to.messages;
    from.send(message);
    while (to.messages == before) {
      here->turn();
      there->turn();
    }
  };
  for (uint64_t i = 0; i < count; ++i) {
    exchange(*client, at_server);
    exchange(*server, at_client);
  }
  client.reset();
  server.reset();
  there->unlisten(std::move(port));
}

// -- CAF ------------------------------------------------------------------------------------------

void caf_level(const char* column, uint64_t count, size_t bytes) {
  bench::context how;
  how.column = column;
  bench::caf_config config_here{how};
  bench::caf_config config_there{how};
  caf::actor_system there{config_there};
  caf::actor_system here{config_here};
  auto echo = there.spawn([](caf::event_based_actor*) -> caf::behavior {
    return {[](std::vector<char>& message) { return std::move(message); }};
  });
  auto port = there.middleman().publish(echo, 0, how.address.c_str());
  if (!port)
    throw std::runtime_error{there.render(port.error())};
  auto server = bench::connect_to(how, here, std::to_string(*port));
  caf::scoped_actor self{here};
  self->wait_for(here.spawn([=](caf::event_based_actor* me) -> caf::behavior {
    me->send(server, std::vector<char>(bytes, 'x'));
    return {[=, left = count](std::vector<char>& message) mutable {
      if (--left == 0)
        me->quit();
      else
        me->send(server, std::move(message));
    }};
  }));
  caf::anon_send_exit(echo, caf::exit_reason::user_shutdown);
}

} // namespace

int main(int argc, char** argv) try {
  const std::string level = argc > 2 ? argv[1] : "";
  const uint64_t count = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
  const size_t bytes = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 64;
  if (count > 0 && bytes > 0) {
    if (level == "device")
      return device_level(count, bytes), 0;
    if (level == "channel")
      return channel_level(count, bytes), 0;
    if (level == "caf")
      return caf_level("troupe_tuned", count, bytes), 0;
    if (level == "caf-tcp")
      return caf_level("caf_tuned", count, bytes), 0;
  }
  std::fprintf(stderr, "usage: bench_micro device|channel|caf|caf-tcp COUNT [BYTES]\n");
  return 2;
} catch (const std::exception& e) {
  std::fprintf(stderr, "bench_micro: %s\n", e.what());
  return 1;
}
