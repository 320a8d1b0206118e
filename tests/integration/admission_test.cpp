// Who may connect, on the real soft device: channels with and without keys, peers that speak
// nonsense, and a process of another user.
#include "soft/frame.hpp"
#include "soft/handshake.hpp"
#include "soft/local_socket.hpp"
#include "wire.hpp"

#include <cerrno>
#include <cstring>
#include <doctest/doctest.h>
#include <grp.h>
#include <netinet/in.h>
#include <poll.h>
#include <random>
#include <spdlog/sinks/ostream_sink.h>
#include <sstream>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <troupe/transport/channel.hpp>
#include <troupe/transport/log.hpp>
#include <troupe/transport/memory_service.hpp>
#include <troupe/transport/open_device.hpp>
#include <unistd.h>

using namespace troupe;
using namespace troupe::transport;

namespace {

using clock_type = std::chrono::steady_clock;
constexpr std::chrono::seconds patience{60};
constexpr uid_t nobody = 65534;

/// What the transport logs while this lives.
class log_listener {
public:
  log_listener() : sink_(std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)) {
    for (auto name : {"transport", "soft"})
      log_for(name)->sinks().push_back(sink_);
  }
  ~log_listener() {
    for (auto name : {"transport", "soft"})
      std::erase(log_for(name)->sinks(), sink_);
  }
  bool mentions(std::string_view what) const { return text_.str().find(what) != std::string::npos; }
  std::string text() const { return text_.str(); }

private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::sinks::ostream_sink_mt> sink_;
};

/// Keeps what comes over a channel.
struct keeper final : channel::reader {
  byte_span next_buffer() override { return std::as_writable_bytes(std::span{&last, 1}); }
  void on_filled() override { text += last; }
  void on_end(const error& why) override { end = why; }
  char last = 0;
  std::string text;
  error end;
};

/// An engine that lets in whom its gate lets in, as CAF's multiplexer does.
struct node {
  explicit node(const char* device = "soft", shared_key_ptr key = nullptr) {
    ::unsetenv("TROUPE_DEVICE");
    auto opened = engine::open(device, std::move(key));
    REQUIRE_MESSAGE(opened, opened.error().text());
    loop = std::move(*opened);
    memory = std::make_unique<memory_service>(*loop);
  }

  ~node() {
    accepted.clear();
    port.reset();
  }

  endpoint listen() {
    auto made = loop->listen({"127.0.0.1", 0}, [this](auto request) { take(*request); });
    REQUIRE_MESSAGE(made, made.error().text());
    port = std::move(*made);
    return port->local();
  }

  void take(connection_request& request) {
    ++requests;
    auto whom = loop->admission().admit(request);
    if (!whom)
      return;
    if (whom->theirs.kind == connection_kind::memory)
      return memory->on_request(request, *whom);
    auto made = channel::accept(*loop, request, *whom, {}, [](const error&) {});
    if (!made)
      return;
    readers.push_back(std::make_unique<keeper>());
    accepted.push_back(std::move(*made));
    accepted.back()->read_with(*readers.back());
  }

  std::unique_ptr<engine> loop;
  std::unique_ptr<memory_service> memory;
  std::unique_ptr<listener> port;
  std::vector<std::unique_ptr<keeper>> readers;
  std::vector<std::unique_ptr<channel>> accepted;
  int requests = 0;
};

template <class Reached>
bool turn_until(std::initializer_list<node*> nodes, Reached reached) {
  auto deadline = clock_type::now() + patience;
  while (!reached()) {
    for (auto each : nodes)
      each->loop->turn_or_sleep(std::chrono::milliseconds{1});
    if (clock_type::now() > deadline)
      return false;
  }
  return true;
}

/// Connects a channel and tells how that ended.
struct attempt {
  attempt(node& from, const endpoint& to) {
    auto made = channel::connect(*from.loop, to, {}, patience, [this](const error& how) {
      done = true;
      outcome = how;
    });
    REQUIRE_MESSAGE(made, made.error().text());
    stream = std::move(*made);
  }
  std::unique_ptr<channel> stream;
  bool done = false;
  error outcome;
};

/// A peer below all that: a device and what it posts.
struct raw_peer {
  explicit raw_peer(const char* name) {
    ::unsetenv("TROUPE_DEVICE");
    auto choice = open_device(name);
    REQUIRE(choice);
    opened = std::move(choice->opened);
    completions = std::move(*opened->create_completion_queue(64));
    memory = std::move(*opened->allocate(65536, access::local));
  }

  void turn() {
    completion batch[8];
    completions->poll(batch);
    while (auto event = opened->next_event())
      events.push_back(std::move(*event));
  }

  void connect(const endpoint& to, byte_view words) {
    auto made = opened->connect(to, {completions.get(), 32, 32}, words, patience);
    REQUIRE(made);
    pair = std::move(*made);
    for (uint64_t id = 0; id < 32; ++id)
      REQUIRE(pair->post_receive(id, {memory.get(), 32768 + id * 512, 512}));
  }

  void send(byte_view bytes) {
    REQUIRE(sent + bytes.size() <= 32768);
    if (!bytes.empty())
      std::memcpy(memory->data() + sent, bytes.data(), bytes.size());
    work_request work;
    work.local = {memory.get(), std::exchange(sent, sent + bytes.size()), bytes.size()};
    REQUIRE(pair->post(work));
  }

  bool heard(connection_event::kind what) const {
    return std::any_of(events.begin(), events.end(), [&](auto& e) { return e.what == what; });
  }

  std::unique_ptr<device> opened;
  std::unique_ptr<completion_queue> completions;
  std::unique_ptr<memory_region> memory;
  std::unique_ptr<queue_pair> pair;
  std::vector<connection_event> events;
  size_t sent = 0; // bytes: each message has its own place, as it may wait for a receive
};

template <class Reached>
bool turn_until(node& with, raw_peer& peer, Reached reached) {
  return turn_until({&with}, [&] {
    peer.turn();
    return reached();
  });
}

packed_hello open_hello(uint16_t slabs = 32, uint32_t slab_bytes = 512) {
  hello h;
  h.step = hello_step::open;
  h.receive_slabs = slabs;
  h.slab_bytes = slab_bytes;
  return encode(h);
}

std::vector<std::byte> frame_of(uint8_t kind, uint16_t credits, uint32_t length,
                                const std::vector<uint8_t>& body = {}) {
  std::vector<std::byte> bytes(8 + body.size());
  store(bytes, 0, kind);
  store(bytes, 2, credits);
  store(bytes, 4, length);
  for (size_t i = 0; i < body.size(); ++i)
    bytes[8 + i] = static_cast<std::byte>(body[i]);
  return bytes;
}

constexpr const char* both[] = {"soft", "soft:tcp"};

} // namespace

TEST_CASE("with one key, or with none, two sides talk") {
  for (auto device : both)
    for (auto& key : {shared_key_ptr{}, shared_key::random()}) {
      CAPTURE(device);
      node server{device, key}, client{device, key};
      attempt made{client, server.listen()};
      REQUIRE(turn_until({&server, &client}, [&] { return made.done; }));
      CHECK_MESSAGE(!made.outcome, made.outcome.text());
      CHECK(server.requests == (key ? 2 : 1)); // the first one only asks
      std::string_view text = "hello";
      std::vector<char> segment{text.begin(), text.end()};
      made.stream->send(segment);
      REQUIRE(turn_until({&server, &client}, [&] {
        return !server.readers.empty() && server.readers[0]->text == text;
      }));
      CHECK(made.stream->path() == (std::string_view{device} == "soft" ? "shared memory" : "tcp"));
    }
}

TEST_CASE("without the same key there is an error on both sides and no connection") {
  auto key = shared_key::random();
  struct {
    shared_key_ptr server, client;
    const char *told, *logged;
  } cases[] = {
      {key, shared_key::random(), "another key", "its key is another one"},
      {key, nullptr, "asks for a key", "it has no key"},
      {nullptr, key, "the peer has none", "it has a key and this node has none"},
  };
  for (auto device : both)
    for (auto& each : cases) {
      CAPTURE(device);
      CAPTURE(each.told);
      log_listener log;
      node server{device, each.server}, client{device, each.client};
      attempt made{client, server.listen()};
      REQUIRE(turn_until({&server, &client}, [&] { return made.done; }));
      CHECK(made.outcome.code() == errc::unauthenticated);
      CHECK(made.outcome.text().find(each.told) != std::string::npos);
      CHECK(made.outcome.text().find(to_string(server.port->local())) != std::string::npos);
      CHECK(turn_until({&server}, [&] { return log.mentions(each.logged); }));
      CHECK(log.mentions("refused (unauthenticated)"));
      CHECK(server.accepted.empty());
    }
}

TEST_CASE("memory links go through the same gate") {
  auto key = shared_key::random();
  for (auto device : both) {
    CAPTURE(device);
    node server{device, key}, client{device, key}, stranger{device, shared_key::random()};
    auto at = server.listen();
    bool opened = false;
    error stranger_end, wrong_end;
    link_ptr ours;
    memory_link::events none;
    auto token = server.memory->expect(none, [&](link_ptr link) { ours = std::move(link); });

    memory_link::events watch;
    watch.closed = [&](const error& why) { stranger_end = why; };
    auto refused = stranger.memory->connect(at, token, patience, watch);
    REQUIRE(refused);
    REQUIRE(turn_until({&server, &stranger}, [&] { return bool{stranger_end}; }));
    CHECK(stranger_end.code() == errc::unauthenticated);
    CHECK_FALSE(ours); // and the token is still good:

    watch.closed = [&](const error& why) { wrong_end = why; };
    auto wrong = client.memory->connect(at, token + 1, patience, watch);
    REQUIRE(wrong);
    REQUIRE(turn_until({&server, &client}, [&] { return bool{wrong_end}; }));
    CHECK(wrong_end.code() == errc::refused);

    memory_link::events right;
    right.opened = [&] { opened = true; };
    auto link = client.memory->connect(at, token, patience, right);
    REQUIRE(link);
    REQUIRE(turn_until({&server, &client}, [&] { return opened && ours && ours->is_open(); }));
  }
}

TEST_CASE("a listener is there for this machine only, unless there is a key") {
  node keyless;
  for (auto host : {"0.0.0.0", "::"}) {
    auto made = keyless.loop->listen({host, 0}, [](auto) {});
    REQUIRE_FALSE(made);
    CHECK(made.error().code() == errc::unauthenticated);
    CHECK(made.error().text().find("trouped --new-key") != std::string::npos);
  }
  auto local = keyless.loop->listen({"", 0}, [](auto) {});
  REQUIRE(local);
  CHECK((*local)->local().host == "127.0.0.1");
  node keyed{"soft", shared_key::random()};
  CHECK(keyed.loop->listen({"", 0}, [](auto) {}));
  CHECK(keyed.loop->listen({"0.0.0.0", 0}, [](auto) {}));
}

TEST_CASE("words that are none end the connection with a reason") {
  auto newer = open_hello();
  newer[4] = std::byte{3};
  auto older = open_hello();
  older[4] = std::byte{1};
  hello reflected;
  reflected.step = hello_step::welcome;
  std::vector<std::byte> noise(48);
  std::mt19937 random{4747};
  for (auto& each : noise)
    each = static_cast<std::byte>(random());
  struct {
    std::vector<std::byte> words;
    const char* logged;
  } cases[] = {
      {{}, "refused (protocol_violation)"},
      {noise, "refused (protocol_violation)"},
      {{newer.begin(), newer.begin() + 20},
       "refused (version_mismatch): the peer speaks version 3"},
      {{newer.begin(), newer.end()}, "refused (version_mismatch): the peer speaks version 3"},
      {{older.begin(), older.begin() + 24},
       "refused (version_mismatch): the peer speaks version 1"},
  };
  auto welcome = encode(reflected);
  for (auto device : both)
    for (auto& key : {shared_key_ptr{}, shared_key::random()})
      for (auto& each : cases) {
        CAPTURE(device);
        CAPTURE(each.logged);
        log_listener log;
        node server{device, key};
        raw_peer peer{device};
        peer.connect(server.listen(), each.words);
        REQUIRE(
            turn_until(server, peer, [&] { return peer.heard(connection_event::kind::failed); }));
        CHECK(log.mentions(each.logged));
        CHECK(server.accepted.empty());
        // The answer tells a peer of another version which one this is.
        auto said = decode_hello(peer.events.front().private_data);
        REQUIRE(said);
        CHECK(said->step == hello_step::refusal);
      }
  node server{"soft"};
  raw_peer peer{"soft"};
  peer.connect(server.listen(), welcome);
  REQUIRE(turn_until(server, peer, [&] { return peer.heard(connection_event::kind::failed); }));
}

TEST_CASE("a listener of another version is told apart from one that refuses") {
  for (auto device : both)
    for (auto& key : {shared_key_ptr{}, shared_key::random()})
      for (bool accepts : {false, true}) {
        CAPTURE(device);
        CAPTURE(accepts);
        raw_peer listens{device};
        auto port = listens.opened->listen({"127.0.0.1", 0});
        REQUIRE(port);
        node client{device, key};
        attempt made{client, (*port)->local()};
        std::unique_ptr<queue_pair> accepted;
        auto answer = encode(hello{});
        answer[4] = std::byte{9};
        REQUIRE(turn_until(client, listens, [&] {
          for (auto& event : listens.events)
            if (event.request && accepts)
              accepted = std::move(*std::exchange(event.request, nullptr)
                                        ->accept({listens.completions.get(), 32, 32}, answer));
            else if (event.request)
              std::exchange(event.request, nullptr)->reject(answer);
          return made.done;
        }));
        // Who accepts what only asks has broken the protocol, whatever its version.
        auto expected = key && accepts ? errc::protocol_violation : errc::version_mismatch;
        CHECK(made.outcome.code() == expected);
      }
}

TEST_CASE("terms that make no sense are refused") {
  for (auto [slabs, bytes] :
       {std::pair<uint16_t, uint32_t>{0, 512}, {1, 512}, {32, 287}, {32, 0}}) {
    node server;
    raw_peer peer{"soft"};
    peer.connect(server.listen(), open_hello(slabs, bytes));
    REQUIRE(turn_until(server, peer, [&] { return peer.heard(connection_event::kind::failed); }));
    CHECK(introduction::explain({}, peer.events.front().private_data).code() ==
          errc::protocol_violation);
    CHECK(server.accepted.empty());
  }
}

TEST_CASE("frames that lie end the channel with a reason") {
  std::vector<uint8_t> announcement(24 + 8, 0);
  announcement[8] = 7; // shorter than the 8 bytes that come along
  std::vector<uint8_t> never_given(24 + 8, 0xee);
  never_given[8] = 255; // long, at an address of ours, with a key that nobody has
  for (size_t i = 9; i < 16; ++i)
    never_given[i] = 0;
  struct {
    std::vector<std::byte> bytes;
    errc code;
    const char* reason;
  } cases[] = {
      {{}, errc::protocol_violation, "shorter than its header"},
      {frame_of(1, 0, 5, {1, 2, 3}), errc::protocol_violation, "whose length lies"},
      {frame_of(1, 0, 0xffffffff, {1, 2, 3}), errc::protocol_violation, "whose length lies"},
      {frame_of(0, 0, 0), errc::protocol_violation, "unknown kind"},
      {frame_of(6, 0, 0), errc::protocol_violation, "unknown kind"},
      {frame_of(4, 1, 0), errc::protocol_violation, "more credits"},
      {frame_of(4, 65535, 0), errc::protocol_violation, "more credits"},
      {frame_of(2, 0, 23, std::vector<uint8_t>(23, 0)), errc::protocol_violation, "cut short"},
      {frame_of(2, 0, 32, announcement), errc::protocol_violation, "shorter than its beginning"},
      {frame_of(2, 0, 32, never_given), errc::remote_access, "read ended with remote_access"},
      {frame_of(3, 0, 4, {1, 0, 0, 0}), errc::protocol_violation, "never announced"},
      {frame_of(3, 0, 0), errc::protocol_violation, "never announced"},
  };
  for (auto device : both)
    for (auto& each : cases) {
      CAPTURE(device);
      CAPTURE(each.reason);
      node server{device};
      raw_peer peer{device};
      peer.connect(server.listen(), open_hello());
      REQUIRE(turn_until(server, peer,
                         [&] { return peer.heard(connection_event::kind::established); }));
      peer.send(frame_of(4, 0, 0)); // the first word
      peer.send(each.bytes);
      REQUIRE(turn_until(server, peer, [&] {
        return server.readers.size() == 1 && bool{server.readers[0]->end};
      }));
      auto& end = server.readers[0]->end;
      CHECK(end.code() == each.code);
      CHECK_MESSAGE(end.text().find(each.reason) != std::string::npos, end.text());
      REQUIRE(turn_until(server, peer,
                         [&] { return peer.heard(connection_event::kind::disconnected); }));
    }
}

namespace {

struct owned_fd {
  explicit owned_fd(int made) : fd(made) {}
  ~owned_fd() { ::close(fd); }
  owned_fd(const owned_fd&) = delete;
  int fd;
};

/// What a process of another user finds out: it ends with the number of the step that went another
/// way than it should, or with 0.
int stranger(const endpoint& at) {
  for (auto device : both) {
    node client{device};
    attempt made{client, at};
    if (!turn_until({&client}, [&] { return made.done; }))
      return 1;
    if (made.outcome.code() != errc::permission_denied)
      return 2;
  }
  // It knows the protocol and takes the door that is meant for this host's own.
  owned_fd tcp{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(at.port);
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(tcp.fd, reinterpret_cast<sockaddr*>(&where), sizeof where) != 0)
    return 3;
  soft::greeting greeted;
  if (::recv(tcp.fd, &greeted, sizeof greeted, MSG_WAITALL) != sizeof greeted)
    return 4;
  if (greeted.socket[0] == '\0')
    return 5;
  owned_fd door{::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, greeted.socket.data(), greeted.socket.size());
  if (::connect(door.fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    return 6;
  soft::claim question;
  question.start.set(open_hello());
  question.ticket = greeted.ticket;
  soft::send_message(door.fd, soft::message_bytes(question), {});
  pollfd readable{door.fd, POLLIN, 0};
  if (::poll(&readable, 1, 60'000) != 1)
    return 7;
  char any = 0;
  return ::recv(door.fd, &any, 1, 0) <= 0 ? 0 : 8; // hung up, and no descriptor came
}

} // namespace

TEST_CASE("a process of another user is not let in, neither by TCP nor to shared memory") {
  if (::geteuid() != 0) {
    MESSAGE("skipped: not root, so no process of another user can be made");
    return;
  }
  log_listener log;
  node server;
  auto at = server.listen();
  std::fflush(nullptr);
  auto child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (::setgroups(0, nullptr) != 0 || ::setgid(nobody) != 0 || ::setuid(nobody) != 0)
      ::_exit(100);
    ::_exit(stranger(at));
  }
  int how = 0;
  CHECK(turn_until({&server}, [&] { return ::waitpid(child, &how, WNOHANG) == child; }));
  REQUIRE(WIFEXITED(how));
  CHECK(WEXITSTATUS(how) == 0);
  CHECK(server.accepted.empty());
  CHECK(log.mentions("refused (permission_denied): it is no process of this user"));
  CHECK(log.mentions("refused shared memory with a process of another user"));
}

TEST_CASE("nobody without a key is taken for the listener's user") {
  if (::geteuid() != 0) {
    MESSAGE("skipped: not root, so no process of another user can be made");
    return;
  }
  // The listener is another user's: what it serves is not what this user asked for.
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  std::fflush(nullptr);
  auto child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (::setgroups(0, nullptr) != 0 || ::setgid(nobody) != 0 || ::setuid(nobody) != 0)
      ::_exit(100);
    ::close(ends[0]);
    raw_peer listens{"soft:tcp"};
    auto port = listens.opened->listen({"127.0.0.1", 0});
    auto number = (*port)->local().port;
    if (::write(ends[1], &number, sizeof number) != sizeof number)
      ::_exit(101);
    std::vector<std::unique_ptr<queue_pair>> accepted;
    auto deadline = clock_type::now() + patience;
    while (clock_type::now() < deadline) { // accepts whoever comes, until it is killed
      listens.turn();
      for (auto& event : std::exchange(listens.events, {}))
        if (event.request) {
          hello h;
          h.step = hello_step::welcome;
          h.receive_slabs = 32;
          h.slab_bytes = 512;
          accepted.push_back(
              std::move(*event.request->accept({listens.completions.get(), 32, 32}, encode(h))));
        }
    }
    ::_exit(102);
  }
  ::close(ends[1]);
  uint16_t port = 0;
  REQUIRE(::read(ends[0], &port, sizeof port) == sizeof port);
  ::close(ends[0]);
  node client;
  attempt made{client, {"127.0.0.1", port}};
  CHECK(turn_until({&client}, [&] { return made.done; }));
  CHECK(made.outcome.code() == errc::unauthenticated);
  ::kill(child, SIGKILL);
  int how = 0;
  CHECK(::waitpid(child, &how, 0) == child);
  CHECK(WIFSIGNALED(how));
}
