// Connecting, refusing, disconnecting.
#include "rig.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cstring>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace conformance;
using kind = connection_event::kind;

namespace {

// RDMA devices may add zero bytes.
bool starts_with(byte_view whole, byte_view expected) {
  return whole.size() >= expected.size() &&
         std::equal(expected.begin(), expected.end(), whole.begin()) &&
         untouched(whole.subspan(expected.size()));
}

// A port on which nobody listens: bound, so that nobody else takes it, but not listening.
class closed_port {
public:
  closed_port() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in where{};
    where.sin_family = AF_INET;
    inet_pton(AF_INET, under_test().address.c_str(), &where.sin_addr);
    socklen_t length = sizeof where;
    REQUIRE(bind(socket_, reinterpret_cast<sockaddr*>(&where), length) == 0);
    REQUIRE(getsockname(socket_, reinterpret_cast<sockaddr*>(&where), &length) == 0);
    port_ = ntohs(where.sin_port);
  }
  ~closed_port() { ::close(socket_); }
  closed_port(const closed_port&) = delete;
  closed_port& operator=(const closed_port&) = delete;

  uint16_t port() const { return port_; }

private:
  int socket_;
  uint16_t port_ = 0;
};

queue_pair_config at(side& where) {
  return {where.completions.get(), 16, 16};
}

} // namespace

TEST_CASE("private data travels both ways") {
  rig r{{.connect = false}};
  auto question = bytes_of("who is there?");
  std::vector<std::byte> answer(max_private_data);
  fill(answer, 2);
  auto pair = r.client.opened->connect(r.listening(), at(r.client), question, patience);
  REQUIRE(pair);
  auto requested = r.next_event(r.server, kind::requested);
  REQUIRE(requested.request);
  CHECK(starts_with(requested.request->private_data(), question));
  CHECK(requested.request->peer().host == under_test().address);
  auto accepted = requested.request->accept(at(r.server), answer);
  REQUIRE(accepted);
  auto established = r.next_event(r.client, kind::established);
  CHECK(established.pair == pair->get());
  CHECK(starts_with(established.private_data, answer));
  CHECK(r.next_event(r.server, kind::established).pair == accepted->get());
  CHECK((*pair)->peer() == r.listening());
  CHECK((*accepted)->peer().host == under_test().address);
  CHECK_FALSE((*pair)->path().empty());
  if (under_test().device == "soft")
    CHECK((*pair)->path() == "shared memory");
  if (under_test().device == "soft:tcp")
    CHECK((*pair)->path() == "tcp");
}

TEST_CASE("a message that comes before the news that the connection stands can be answered") {
  rig r{{.connect = false}};
  auto pair = r.client.opened->connect(r.listening(), at(r.client), {}, patience);
  REQUIRE(pair);
  auto requested = r.next_event(r.server, kind::requested);
  auto accepted = requested.request->accept(at(r.server), {});
  REQUIRE(accepted);
  REQUIRE((*accepted)->post_receive(1, {}));
  REQUIRE((*pair)->post_receive(2, {}));
  // Set-up goes on there, but what it has to tell is not asked for.
  auto early = r.server.opened->next_event();
  std::optional<connection_event> stands;
  REQUIRE(turn_until(
      {&r.client}, [&] { return (stands = r.client.take_event(kind::established)).has_value(); }));
  REQUIRE((*pair)->post(send_request(3, {})));
  completion heard;
  REQUIRE(turn_until({&r.client}, [&] { return r.server.completions->poll({&heard, 1}) == 1; }));
  CHECK(heard.id == 1);
  CHECK(heard.status == errc::none);
  auto answered = (*accepted)->post(send_request(4, {}));
  REQUIRE_MESSAGE(answered, answered.error().text());
  CHECK(r.next(r.client).status == errc::none);
  CHECK(r.next(r.client).status == errc::none);
  CHECK(r.next(r.server).id == 4);
  if (!early)
    CHECK(r.next_event(r.server, kind::established).pair == accepted->get());
}

TEST_CASE("too much private data is refused at once") {
  rig r{{.connect = false}};
  std::vector<std::byte> data(max_private_data + 1);
  auto pair = r.client.opened->connect(r.listening(), at(r.client), data, patience);
  REQUIRE_FALSE(pair);
  CHECK(pair.error().code() == errc::invalid_argument);
}

TEST_CASE("a listener's no arrives with its private data") {
  rig r{{.connect = false}};
  for (bool silently : {false, true}) {
    auto pair = r.client.opened->connect(r.listening(), at(r.client), {}, patience);
    REQUIRE(pair);
    REQUIRE((*pair)->post_receive(5, {}));
    {
      auto requested = r.next_event(r.server, kind::requested);
      if (!silently)
        requested.request->reject(bytes_of("full"));
    }
    auto failed = r.next_event(r.client, kind::failed);
    CHECK(failed.pair == pair->get());
    CHECK(failed.reason.code() == errc::refused);
    CHECK_FALSE(failed.reason.text().empty());
    if (!silently)
      CHECK(starts_with(failed.private_data, bytes_of("full")));
    CHECK(r.server.events.empty());
  }
}

TEST_CASE("connecting to a port where nobody listens fails as refused") {
  rig r{{.connect = false}};
  closed_port nobody;
  auto pair =
      r.client.opened->connect({under_test().address, nobody.port()}, at(r.client), {}, patience);
  REQUIRE(pair);
  auto failed = r.next_event(r.client, kind::failed);
  CHECK(failed.pair == pair->get());
  CHECK(failed.reason.code() == errc::refused);
  CHECK(failed.reason.text().find(std::to_string(nobody.port())) != std::string::npos);
}

TEST_CASE("a listener that does not answer makes connect time out") {
  rig r{{.connect = false}};
  auto pair =
      r.client.opened->connect(r.listening(), at(r.client), {}, std::chrono::milliseconds{300});
  REQUIRE(pair);
  // The request is taken but never answered.
  auto requested = r.next_event(r.server, kind::requested);
  auto failed = r.next_event(r.client, kind::failed);
  CHECK(failed.pair == pair->get());
  CHECK(failed.reason.code() == errc::timeout);
  CHECK_FALSE(failed.reason.text().empty());
}

TEST_CASE("an answer that comes after the client gave up does no harm") {
  rig r{{.connect = false}};
  auto pair = r.client.opened->connect(r.listening(), at(r.client), {}, patience);
  REQUIRE(pair);
  auto requested = r.next_event(r.server, kind::requested);
  pair->reset();
  turn_for({&r.client, &r.server}, std::chrono::milliseconds{20});
  if (auto accepted = requested.request->accept(at(r.server), {})) {
    turn_for({&r.client, &r.server}, std::chrono::milliseconds{100});
    CHECK(r.client.events.empty());
    r.server.events.clear(); // of the accepted pair: established, disconnected or neither
  }
  r.server.events.clear();
  // The listener goes on.
  auto made = r.connect();
  CHECK(made.client);
}

TEST_CASE("listening twice on one port is an error that names it") {
  rig r{{.connect = false}};
  auto where = r.listening();
  auto second = r.client.opened->listen(where);
  REQUIRE_FALSE(second);
  CHECK(second.error().code() == errc::address_in_use);
  CHECK(second.error().text().find(std::to_string(where.port)) != std::string::npos);
}

TEST_CASE("a listener on every address is reached") {
  rig r{{.connect = false}};
  auto made = r.server.opened->listen({"", 0});
  REQUIRE_MESSAGE(made, made.error().text());
  r.listening_at = std::move(*made);
  auto pairs = r.connect();
  CHECK(pairs.server);
}

TEST_CASE("accepted connections outlive their listener, whose port is free again") {
  rig r;
  auto where = r.listening();
  r.listening_at.reset();
  auto& inbox = r.memory(r.server, 64);
  REQUIRE(r.server_pair->post_receive(1, slice(inbox)));
  REQUIRE(r.client_pair->post(send_request(2, {})));
  CHECK(r.next(r.server).id == 1);
  CHECK(r.next(r.client).id == 2);
  auto pair = r.client.opened->connect(where, at(r.client), {}, patience);
  REQUIRE(pair);
  CHECK(r.next_event(r.client, kind::failed).reason.code() == errc::refused);
}

TEST_CASE("a disconnect is seen by both, and posted work is flushed") {
  for (bool by_client : {true, false}) {
    CAPTURE(by_client);
    rig r;
    for (uint64_t id = 0; id < 3; ++id) {
      REQUIRE(r.client_pair->post_receive(id, {}));
      REQUIRE(r.server_pair->post_receive(id, {}));
    }
    (by_client ? r.client_pair : r.server_pair)->disconnect();
    CHECK(r.next_event(r.client, kind::disconnected).pair == r.client_pair.get());
    CHECK(r.next_event(r.server, kind::disconnected).pair == r.server_pair.get());
    for (auto each : {&r.client, &r.server})
      for (uint64_t id = 0; id < 3; ++id) {
        auto flushed = r.next(*each);
        CHECK(flushed.id == id);
        CHECK(flushed.op == opcode::receive);
        CHECK(flushed.status == errc::flushed);
      }
    r.client_pair->disconnect();
    r.server_pair->disconnect();
    turn_for({&r.client, &r.server}, std::chrono::milliseconds{20});
    CHECK(r.client.events.empty());
    CHECK(r.server.events.empty());
  }
}

TEST_CASE("destroying a pair disconnects the peer") {
  rig r;
  REQUIRE(r.server_pair->post_receive(1, {}));
  REQUIRE(r.client_pair->post_receive(2, {}));
  r.client_pair.reset();
  CHECK(r.next_event(r.server, kind::disconnected).pair == r.server_pair.get());
  CHECK(r.next(r.server).status == errc::flushed);
  turn_for({&r.client, &r.server}, std::chrono::milliseconds{20});
  CHECK(r.client.events.empty());
  CHECK(r.client.done.empty());
}

TEST_CASE("what was sent before a disconnect still arrives") {
  rig r;
  auto& here = r.memory(r.client, 1000);
  auto& there = r.memory(r.server, 1000);
  fill(here.bytes().first(1000), 4);
  REQUIRE(r.server_pair->post_receive(1, slice(there)));
  REQUIRE(r.client_pair->post(send_request(2, slice(here, 0, 1000))));
  CHECK(r.next(r.client).status == errc::none);
  r.client_pair->disconnect();
  auto received = r.next(r.server);
  CHECK(received.status == errc::none);
  CHECK(received.length == 1000);
  CHECK(filled(there.bytes().first(1000), 4));
  r.next_event(r.server, kind::disconnected);
}

TEST_CASE("work after a disconnect is flushed or refused, never lost") {
  rig r;
  r.client_pair->disconnect();
  r.next_event(r.client, kind::disconnected);
  r.client.done.clear();
  if (auto posted = r.client_pair->post(send_request(9, {})); posted) {
    auto flushed = r.next(r.client);
    CHECK(flushed.id == 9);
    CHECK(flushed.status == errc::flushed);
  } else {
    CHECK(posted.error().code() == errc::disconnected);
  }
}

TEST_CASE("a device connects to itself") {
  rig r{{.connect = false}};
  auto made = r.client.opened->listen({under_test().address, 0});
  REQUIRE(made);
  endpoint where{under_test().address, (*made)->local().port};
  auto pair = r.client.opened->connect(where, at(r.client), {}, patience);
  REQUIRE(pair);
  auto requested = r.next_event(r.client, kind::requested);
  auto accepted = requested.request->accept(at(r.client), {});
  REQUIRE(accepted);
  r.next_event(r.client, kind::established);
  r.next_event(r.client, kind::established);
  auto& memory = r.memory(r.client, 8192, every_right);
  fill(memory.bytes().first(100), 1);
  REQUIRE((*accepted)->post_receive(1, slice(memory, 4096, 100)));
  REQUIRE((*pair)->post(send_request(2, slice(memory, 0, 100))));
  for (int i = 0; i < 2; ++i)
    CHECK(r.next(r.client).status == errc::none);
  CHECK(filled(memory.bytes().subspan(4096, 100), 1));
}
