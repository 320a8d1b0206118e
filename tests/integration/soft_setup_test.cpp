// How the soft device treats whoever connects to it, and a process that runs out of descriptors.
#include "soft/handshake.hpp"
#include "soft/local_socket.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <random>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <troupe/transport/device.hpp>
#include <troupe/transport/log.hpp>
#include <troupe/transport/open_device.hpp>
#include <unistd.h>
#include <vector>

using namespace troupe;
using namespace troupe::transport;
using steady = std::chrono::steady_clock;
using kind = connection_event::kind;

namespace {

constexpr std::chrono::seconds patience{60};

struct owned_fd {
  explicit owned_fd(int made) : fd(made) {}
  ~owned_fd() { close(); }
  owned_fd(owned_fd&& other) noexcept : fd(std::exchange(other.fd, -1)) {}
  owned_fd& operator=(owned_fd&&) = delete;
  void close() {
    if (fd >= 0)
      ::close(std::exchange(fd, -1));
  }
  int fd;
};

struct node {
  explicit node(const char* name = "soft") {
    unsetenv("TROUPE_DEVICE");
    auto choice = open_device(name);
    REQUIRE_MESSAGE(choice, choice.error().text());
    opened = std::move(choice->opened);
    completions = std::move(*opened->create_completion_queue(64));
  }

  void turn() {
    completion batch[8];
    auto count = completions->poll(batch);
    done.insert(done.end(), batch, batch + count);
    while (auto event = opened->next_event())
      events.push_back(std::move(*event));
  }

  queue_pair_config config() { return {completions.get(), 8, 8}; }

  std::unique_ptr<device> opened;
  std::unique_ptr<completion_queue> completions;
  std::vector<completion> done;
  std::vector<connection_event> events;
};

template <class Reached>
bool turn_until(std::initializer_list<node*> nodes, Reached reached) {
  auto deadline = steady::now() + patience;
  while (!reached()) {
    for (auto each : nodes)
      each->turn();
    if (steady::now() > deadline)
      return false;
    std::this_thread::sleep_for(std::chrono::microseconds{200});
  }
  return true;
}

owned_fd plain_socket() {
  owned_fd made{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  REQUIRE(made.fd >= 0);
  return made;
}

void connect_to(const owned_fd& socket, uint16_t port) {
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(port);
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::connect(socket.fd, reinterpret_cast<sockaddr*>(&where), sizeof where) == 0);
}

// Whether the other end has closed; what it sent before is thrown away.
bool closed(const owned_fd& socket) {
  char part[512];
  for (;;) {
    auto got = recv(socket.fd, part, sizeof part, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN))
      return true;
    if (got < 0)
      return false;
  }
}

// Connects two devices for real and passes one message.
std::string check_connects(node& client, node& server, listener& at) {
  auto pair = client.opened->connect({"127.0.0.1", at.local().port}, client.config(), {}, patience);
  REQUIRE(pair);
  REQUIRE(turn_until({&client, &server}, [&] { return !server.events.empty(); }));
  auto request = std::move(server.events.front().request);
  server.events.clear();
  REQUIRE(request);
  auto accepted = request->accept(server.config(), {});
  REQUIRE(accepted);
  REQUIRE((*accepted)->post_receive(1, {}));
  REQUIRE(turn_until({&client, &server}, [&] { return !client.events.empty(); }));
  REQUIRE(client.events.front().what == kind::established);
  work_request nothing; // a send of no bytes
  nothing.id = 2;
  REQUIRE((*pair)->post(nothing));
  REQUIRE(
      turn_until({&client, &server}, [&] { return !client.done.empty() && !server.done.empty(); }));
  CHECK(server.done.front().status == errc::none);
  auto path = (*pair)->path();
  CHECK((*accepted)->path() == path);
  pair->reset();
  accepted->reset();
  for (auto each : {&client, &server}) {
    each->turn();
    each->events.clear();
    each->done.clear();
  }
  return path;
}

} // namespace

TEST_CASE("peers that speak nonsense are dropped, and others served") {
  set_log_level(spdlog::level::off);
  node server;
  node client;
  auto at = server.opened->listen({"127.0.0.1", 0});
  REQUIRE(at);
  std::mt19937 random{7};
  for (size_t length : {size_t{64}, size_t{4096}, size_t{300'000}}) {
    auto visitor = plain_socket();
    connect_to(visitor, (*at)->local().port);
    std::vector<char> nonsense(length);
    for (auto& each : nonsense)
      each = static_cast<char>(random());
    // What does not fit need not go.
    [[maybe_unused]] auto sent =
        send(visitor.fd, nonsense.data(), nonsense.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    CHECK(turn_until({&server}, [&] { return closed(visitor); }));
  }
  CHECK(server.events.empty());
  CHECK(check_connects(client, server, **at) == "shared memory");
}

TEST_CASE("peers that leave at once or say nothing do no harm") {
  set_log_level(spdlog::level::off);
  node server;
  node client;
  auto at = server.opened->listen({"127.0.0.1", 0});
  REQUIRE(at);
  auto silent = plain_socket();
  connect_to(silent, (*at)->local().port);
  for (int i = 0; i < 50; ++i) {
    auto visitor = plain_socket();
    connect_to(visitor, (*at)->local().port);
    if (i % 2 == 0)
      server.turn();
  }
  CHECK(check_connects(client, server, **at) == "shared memory");
  CHECK_FALSE(closed(silent));
  // Its time runs out.
  CHECK(turn_until({&server}, [&] { return closed(silent); }));
  CHECK(server.events.empty());
}

TEST_CASE("memory that could shrink is not mapped, and its owner may go on over TCP") {
  set_log_level(spdlog::level::off);
  node server;
  auto at = server.opened->listen({"127.0.0.1", 0});
  REQUIRE(at);
  auto visitor = plain_socket();
  connect_to(visitor, (*at)->local().port);
  soft::greeting hello;
  REQUIRE(turn_until({&server}, [&] {
    return recv(visitor.fd, &hello, sizeof hello, MSG_DONTWAIT) == sizeof hello;
  }));
  owned_fd door{::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, hello.socket.data(), hello.socket.size());
  REQUIRE(::connect(door.fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  owned_fd memory{memfd_create("not sealed", MFD_CLOEXEC)};
  REQUIRE(ftruncate(memory.fd, 64 << 20) == 0);
  soft::claim question;
  question.ticket = hello.ticket;
  int files[] = {memory.fd, memory.fd, memory.fd, memory.fd};
  REQUIRE(soft::send_message(door.fd, soft::message_bytes(question), files));
  soft::answer_message answer;
  REQUIRE(turn_until({&server}, [&] {
    soft::local_message message;
    auto into = std::as_writable_bytes(std::span{&answer, 1});
    return soft::receive_message(door.fd, into, message) == soft::local_outcome::message;
  }));
  CHECK(answer.outcome == soft::verdict::use_tcp);
  CHECK(server.events.empty());
  soft::request_message request;
  REQUIRE(send(visitor.fd, &request, sizeof request, MSG_NOSIGNAL) == sizeof request);
  REQUIRE(turn_until({&server}, [&] { return !server.events.empty(); }));
  CHECK(server.events.front().what == kind::requested);
}

TEST_CASE("a device that speaks only TCP and one that can share memory understand each other") {
  node automatic;
  node tcp{"soft:tcp"};
  auto at_automatic = automatic.opened->listen({"127.0.0.1", 0});
  auto at_tcp = tcp.opened->listen({"127.0.0.1", 0});
  REQUIRE(at_automatic);
  REQUIRE(at_tcp);
  CHECK(check_connects(tcp, automatic, **at_automatic) == "tcp");
  CHECK(check_connects(automatic, tcp, **at_tcp) == "tcp");
}

TEST_CASE("what listens there but is no soft device is told apart") {
  node client;
  auto other = plain_socket();
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof where;
  REQUIRE(bind(other.fd, reinterpret_cast<sockaddr*>(&where), length) == 0);
  REQUIRE(listen(other.fd, 4) == 0);
  REQUIRE(getsockname(other.fd, reinterpret_cast<sockaddr*>(&where), &length) == 0);
  auto pair =
      client.opened->connect({"127.0.0.1", ntohs(where.sin_port)}, client.config(), {}, patience);
  REQUIRE(pair);
  owned_fd accepted{accept4(other.fd, nullptr, nullptr, SOCK_CLOEXEC)};
  REQUIRE(accepted.fd >= 0);
  std::string banner(500, 'S');
  REQUIRE(send(accepted.fd, banner.data(), banner.size(), MSG_NOSIGNAL) > 0);
  REQUIRE(turn_until({&client}, [&] { return !client.events.empty(); }));
  CHECK(client.events.front().what == kind::failed);
  CHECK(client.events.front().reason.code() == errc::protocol_violation);
}

TEST_CASE("a listener without descriptors waits without spinning, and goes on") {
  set_log_level(spdlog::level::off);
  node server;
  auto at = server.opened->listen({"127.0.0.1", 0});
  REQUIRE(at);
  auto visitor = plain_socket();
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit few = before;
  few.rlim_cur = 64;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
  std::vector<owned_fd> taken;
  for (int fd; (fd = fcntl(visitor.fd, F_DUPFD_CLOEXEC, 0)) >= 0;)
    taken.emplace_back(fd);
  connect_to(visitor, (*at)->local().port);
  // Each pause ends with one attempt: far fewer wake-ups than a descriptor that stays readable.
  int wake_ups = 0;
  for (auto end = steady::now() + std::chrono::seconds{1}; steady::now() < end;) {
    pollfd waiting{server.opened->event_fd(), POLLIN, 0};
    if (::poll(&waiting, 1, 50) == 1)
      ++wake_ups;
    server.turn();
  }
  CHECK(wake_ups >= 1);
  CHECK(wake_ups < 60);
  char byte = 0;
  CHECK(recv(visitor.fd, &byte, 1, MSG_DONTWAIT) < 0);
  taken.clear();
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
  // Now it is accepted and greeted.
  CHECK(turn_until({&server}, [&] { return recv(visitor.fd, &byte, 1, MSG_DONTWAIT) == 1; }));
}

TEST_CASE("what has been sent over TCP arrives although the device is closed at once") {
  constexpr uint32_t count = 8192;
  constexpr size_t length = 4096;
  node server{"soft:tcp"};
  auto client = std::make_unique<node>("soft:tcp");
  auto deep = [&](node& where) { return queue_pair_config{where.completions.get(), count, count}; };
  auto at = server.opened->listen({"127.0.0.1", 0});
  REQUIRE(at);
  auto pair =
      client->opened->connect({"127.0.0.1", (*at)->local().port}, deep(*client), {}, patience);
  REQUIRE(pair);
  REQUIRE(turn_until({client.get(), &server}, [&] { return !server.events.empty(); }));
  auto accepted = server.events.front().request->accept(deep(server), {});
  REQUIRE(accepted);
  auto there = server.opened->allocate(length, access::local);
  auto here = client->opened->allocate(length, access::local);
  REQUIRE(there);
  REQUIRE(here);
  for (uint64_t id = 0; id < count; ++id)
    REQUIRE((*accepted)->post_receive(id, {there->get(), 0, length}));
  REQUIRE(turn_until({client.get(), &server}, [&] { return !client->events.empty(); }));
  turn_until({client.get(), &server}, [&, turns = 0]() mutable { return ++turns > 20; });
  // The server takes nothing for now: the connection fills up.
  for (uint64_t id = 0; id < count; ++id) {
    work_request work;
    work.id = id;
    work.local = {here->get(), 0, length};
    REQUIRE((*pair)->post(work));
  }
  size_t before = 0;
  do {
    before = client->done.size();
    for (int i = 0; i < 100; ++i)
      client->turn();
    std::this_thread::sleep_for(std::chrono::milliseconds{100});
  } while (client->done.size() > before);
  REQUIRE(before > 0);
  REQUIRE(before < count);
  std::thread other{[&] { turn_until({&server}, [&] { return server.done.size() == count; }); }};
  pair->reset();
  here->reset();
  client.reset();
  other.join();
  REQUIRE(server.done.size() == count); // some are flushed
  size_t received = 0;
  for (const auto& done : server.done)
    received += done.status == errc::none ? 1 : 0;
  CHECK(received >= before);
}
