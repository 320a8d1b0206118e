#include "role.hpp"

#include "rig.hpp"

#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>

namespace conformance {

namespace {

constexpr size_t buffer_size = 64 * 1024;
constexpr uint32_t buffers = 16;
constexpr uint64_t sending = 1000; // ids from here on are sends

// One accepted connection; member order is lifetime order.
class server_role {
public:
  explicit server_role(uint32_t receives, uint16_t port = 0) {
    auto listening = side_.opened->listen({under_test().address, port});
    REQUIRE_MESSAGE(listening, listening.error().text());
    listener_ = std::move(*listening);
    std::printf("port %d\n", listener_->local().port);
    std::fflush(stdout);
    exposed_ = allocate(buffer_size, every_right);
    incoming_ = allocate(buffer_size * buffers, rights::local);
    outgoing_ = allocate(buffer_size * buffers, rights::local);
    std::optional<connection_event> event;
    REQUIRE(turn_until({&side_}, [&] {
      event = side_.take_event(connection_event::kind::requested);
      return event.has_value();
    }));
    auto pair = event->request->accept({side_.completions.get(), buffers, buffers}, {});
    REQUIRE_MESSAGE(pair, pair.error().text());
    pair_ = std::move(*pair);
    for (uint32_t i = 0; i < receives; ++i)
      REQUIRE(pair_->post_receive(i, slice(*incoming_, i * buffer_size, buffer_size)));
    REQUIRE(turn_until({&side_}, [&] {
      return side_.take_event(connection_event::kind::established).has_value();
    }));
  }

  void echo() {
    auto place = exposed_->remote();
    std::memcpy(outgoing_->data(), &place, sizeof place);
    REQUIRE(pair_->post(send_request(sending, slice(*outgoing_, 0, sizeof place))));
    while (!ended()) {
      turn_until({&side_}, [this] { return !side_.done.empty() || ended(); });
      for (; !side_.done.empty(); side_.done.pop_front())
        answer(side_.done.front());
    }
  }

  void sit() {
    while (!ended())
      turn_for({&side_}, std::chrono::milliseconds{10});
  }

  void burst(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      auto part = slice(*outgoing_, i * buffer_size, 1000);
      fill(outgoing_->bytes().subspan(part.offset, part.length), i);
      REQUIRE(pair_->post(send_request(sending + i, part)));
    }
    REQUIRE(turn_until({&side_}, [&] { return side_.done.size() == count; }));
    raise(SIGKILL);
  }

private:
  std::unique_ptr<memory_region> allocate(size_t size, rights held) {
    auto made = side_.opened->allocate(size, held);
    REQUIRE_MESSAGE(made, made.error().text());
    return std::move(*made);
  }

  bool ended() {
    for (const auto& event : side_.events)
      if (event.what == connection_event::kind::disconnected)
        return true;
    return false;
  }

  // Sends back a message from the buffer it came in, which is posted again once it has left.
  void answer(const completion& done) {
    if (done.status != errc::none)
      return;
    if (done.op == opcode::receive) {
      auto came = slice(*incoming_, done.id * buffer_size, done.length);
      REQUIRE(pair_->post(send_request(sending + 1 + done.id, came)));
    } else if (done.id > sending) {
      auto index = done.id - sending - 1;
      REQUIRE(pair_->post_receive(index, slice(*incoming_, index * buffer_size, buffer_size)));
    }
  }

  side side_;
  std::unique_ptr<memory_region> exposed_;
  std::unique_ptr<memory_region> incoming_;
  std::unique_ptr<memory_region> outgoing_;
  std::unique_ptr<listener> listener_;
  std::unique_ptr<queue_pair> pair_;
};

void play(const std::string& role, const std::string& argument) {
  auto count = static_cast<uint32_t>(std::strtoul(argument.c_str(), nullptr, 10));
  if (role == "echo")
    server_role{buffers}.echo();
  else if (role == "sink")
    server_role{count}.sit();
  else if (role == "sink-at")
    server_role{buffers, static_cast<uint16_t>(count)}.sit();
  else if (role == "burst")
    server_role{0}.burst(count);
  else
    FAIL("no role ", role);
}

std::string playing;
std::string with;

} // namespace

// The role runs as a test case, so that its checks report as those of any test.
TEST_CASE("the second process" * doctest::skip()) {
  play(playing, with);
}

int play_role(const std::string& role, const std::string& argument) {
  playing = role;
  with = argument;
  doctest::Context context;
  context.setOption("test-case", "the second process");
  context.setOption("no-skip", true);
  context.setOption("minimal", true);
  // Its standard output is for the lines that the test reads.
  context.setCout(&std::cerr);
  return context.run();
}

} // namespace conformance
