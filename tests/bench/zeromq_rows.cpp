#include "zeromq_rows.hpp"

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <unistd.h>
#include <zmq.h>

namespace bench {

namespace {

constexpr size_t small_message = 64;
constexpr uint64_t credit = 250;
constexpr uint64_t window = 1000;

void check(bool good, const char* what) {
  if (!good)
    throw std::runtime_error{std::string{what} + ": " + zmq_strerror(zmq_errno())};
}

/// A PAIR socket in a context of its own.
class pair_socket {
public:
  pair_socket()
      : context_(zmq_ctx_new()), socket_(context_ ? zmq_socket(context_, ZMQ_PAIR) : nullptr) {
    check(socket_, "zmq_socket");
    const int none = 0;
    for (auto option : {ZMQ_SNDHWM, ZMQ_RCVHWM, ZMQ_LINGER}) // 0: no limit, no lingering
      check(zmq_setsockopt(socket_, option, &none, sizeof none) == 0, "zmq_setsockopt");
  }
  ~pair_socket() {
    zmq_close(socket_);
    zmq_ctx_term(context_);
  }
  pair_socket(const pair_socket&) = delete;
  pair_socket& operator=(const pair_socket&) = delete;

  void bind(const std::string& where) { check(zmq_bind(socket_, where.c_str()) == 0, "zmq_bind"); }
  void connect(const std::string& where) {
    check(zmq_connect(socket_, where.c_str()) == 0, "zmq_connect");
  }

  /// Sends bytes that stay as they are until the socket is gone; they are not copied here.
  void send(std::vector<char>& bytes) {
    zmq_msg_t message;
    check(zmq_msg_init_data(
              &message, bytes.data(), bytes.size(), [](void*, void*) {}, nullptr) == 0,
          "zmq_msg_init_data");
    check(zmq_msg_send(&message, socket_, 0) >= 0, "zmq_msg_send");
  }

  void send_copy(const void* bytes, size_t size) {
    check(zmq_send(socket_, bytes, size, 0) >= 0, "zmq_send");
  }

  /// @returns the size of the next message.
  size_t receive() {
    zmq_msg_t message;
    zmq_msg_init(&message);
    check(zmq_msg_recv(&message, socket_, 0) >= 0, "zmq_msg_recv");
    auto size = zmq_msg_size(&message);
    zmq_msg_close(&message);
    return size;
  }

private:
  void* context_;
  void* socket_;
};

struct client {
  std::unique_ptr<child> peer;
  pair_socket socket;

  client(const context& c, const std::string& what, uint64_t every)
      : peer(c.start_peer("zeromq", {what, std::to_string(every)})) {
    socket.connect(peer->line(std::chrono::seconds{60}));
    socket.send_copy("hello", 5); // connected once this has been answered
    socket.receive();
  }
};

} // namespace

bool zeromq_present() {
  return true;
}

sample zeromq_round_trip(const context& c) {
  client it{c, "echo", 1};
  const std::vector<char> message(small_message, 'x');
  measurement course{c.usual(), it.peer->id()};
  do {
    it.socket.send_copy(message.data(), message.size());
    it.socket.receive();
  } while (course.unit_done(1));
  sample out;
  course.add_latency(out);
  course.add_costs(out);
  return out;
}

sample zeromq_one_way(const context& c) {
  client it{c, "sink", credit};
  const std::vector<char> message(small_message, 'x');
  measurement course{c.usual(), it.peer->id()};
  auto send = [&](uint64_t count) {
    for (uint64_t i = 0; i < count; ++i)
      it.socket.send_copy(message.data(), message.size());
  };
  send(window - credit);
  do {
    send(credit);
    it.socket.receive();
  } while (course.unit_done(credit));
  sample out;
  course.add_rate(out);
  course.add_costs(out);
  return out;
}

sample zeromq_payload(const context& c, size_t bytes, size_t at_once) {
  std::vector<char> payload; // outlives the socket
  client it{c, "sink", 1};
  measurement course{c.usual(), it.peer->id()};
  payload.assign(bytes, 'x');
  for (size_t i = 1; i < at_once; ++i)
    it.socket.send(payload);
  do {
    it.socket.send(payload);
    it.socket.receive();
  } while (course.unit_done(1));
  sample out;
  course.add_throughput(out, bytes);
  course.add_costs(out);
  return out;
}

int zeromq_serve(const context&, const std::vector<std::string>& arguments) {
  const auto echo = arguments.at(0) == "echo";
  const auto every = std::stoull(arguments.at(1));
  const auto where = "ipc://@troupe-bench-" + std::to_string(::getpid());
  const std::vector<char> answer(small_message, 'x');
  pair_socket socket;
  socket.bind(where);
  std::printf("%s\n", where.c_str());
  std::fflush(stdout);
  socket.receive();
  socket.send_copy("hello", 5);
  for (uint64_t messages = 1;; ++messages) { // until it is killed
    socket.receive();
    if (echo || messages % every == 0)
      socket.send_copy(answer.data(), echo ? answer.size() : 8);
  }
}

} // namespace bench
