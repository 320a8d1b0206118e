// What the conformance suite does not ask of the verbs device, over every usable adapter of this
// machine. Without one it is skipped.
#define DOCTEST_CONFIG_IMPLEMENT
#include <algorithm>
#include <chrono>
#include <csignal>
#include <doctest/doctest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <troupe/transport/log.hpp>
#include <troupe/transport/open_device.hpp>
#include <unistd.h>
#include <verbs/inspect.hpp>
#include <verbs/verbs_device.hpp>

using namespace troupe;
using namespace troupe::transport;
using namespace std::chrono_literals;
using kind = connection_event::kind;

namespace {

constexpr auto patience = 60s; // the adapters under test are mostly emulated

std::vector<device_candidate> usable_adapters() {
  auto all = list_verbs_devices();
  std::erase_if(all, [](const device_candidate& candidate) { return !candidate.usable; });
  return all;
}

std::vector<std::string> addresses_of(const device_candidate& candidate) {
  std::vector<std::string> hosts;
  for (const auto& report : verbs::inspect_adapters())
    if ("verbs:" + report.name == candidate.name)
      for (const auto& address : report.addresses)
        hosts.push_back(address.host());
  return hosts;
}

std::unique_ptr<device> open(const device_candidate& candidate) {
  auto opened = open_verbs_device(candidate.name.substr(6));
  REQUIRE_MESSAGE(opened, opened.error().text());
  return std::move(*opened);
}

std::unique_ptr<completion_queue> make_queue(device& on, uint32_t depth = 64) {
  auto made = on.create_completion_queue(depth);
  REQUIRE_MESSAGE(made, made.error().text());
  return std::move(*made);
}

/// Sleeps on the device's descriptor, as a loop does, until an event of `wanted` comes; others are
/// dropped.
connection_event wait_for(device& on, kind wanted) {
  auto deadline = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < deadline) {
    while (auto event = on.next_event())
      if (event->what == wanted)
        return std::move(*event);
    pollfd waiting{on.event_fd(), POLLIN, 0};
    ::poll(&waiting, 1, 1000);
  }
  FAIL("no event of kind ", static_cast<int>(wanted));
  return {};
}

struct ends {
  std::unique_ptr<queue_pair> client;
  std::unique_ptr<queue_pair> server;
};

/// Both ends on one device. The listener is gone afterwards.
ends connect_to_itself(device& on, const queue_pair_config& config, const std::string& host) {
  auto listening = on.listen({host, 0});
  REQUIRE_MESSAGE(listening, listening.error().text());
  auto client = on.connect({host, (*listening)->local().port}, config, {}, patience);
  REQUIRE_MESSAGE(client, client.error().text());
  auto server = wait_for(on, kind::requested).request->accept(config, {});
  REQUIRE_MESSAGE(server, server.error().text());
  wait_for(on, kind::established);
  wait_for(on, kind::established);
  return {std::move(*client), std::move(*server)};
}

completion wait_for(completion_queue& queue) {
  auto deadline = std::chrono::steady_clock::now() + patience;
  completion done;
  while (std::chrono::steady_clock::now() < deadline)
    if (queue.poll({&done, 1}) == 1)
      return done;
  FAIL("no completion");
  return done;
}

/// A child process that ends with the value of `body`; killed when it was not waited for.
template <class Body>
class child {
public:
  explicit child(Body body) : pid_(fork()) {
    if (pid_ == 0) {
      try {
        _exit(body());
      } catch (...) { // a failed check must not go on as a second parent
        _exit(99);
      }
    }
  }
  ~child() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }
  int wait() {
    int how = 0;
    bool reaped = pid_ > 0 && waitpid(std::exchange(pid_, -1), &how, 0) > 0;
    return reaped && WIFEXITED(how) ? WEXITSTATUS(how) : 128;
  }

private:
  pid_t pid_;
};

} // namespace

TEST_CASE("loopback hosts mean the adapter's own address") {
  for (const auto& candidate : usable_adapters()) {
    CAPTURE(candidate.name);
    auto on = open(candidate);
    auto queue = make_queue(*on);
    for (auto host : {"127.0.0.1", "localhost", "::1"}) {
      CAPTURE(host);
      auto listening = on->listen({host, 0});
      REQUIRE_MESSAGE(listening, listening.error().text());
      auto addresses = addresses_of(candidate);
      auto own = (*listening)->local().host;
      CHECK(std::find(addresses.begin(), addresses.end(), own) != addresses.end());
      CHECK(connect_to_itself(*on, {queue.get(), 8, 8}, host).client->peer().host == own);
    }
  }
}

TEST_CASE("every address of an adapter, of both families, reaches those who listen there") {
  for (const auto& candidate : usable_adapters()) {
    CAPTURE(candidate.name);
    auto on = open(candidate);
    auto queue = make_queue(*on);
    auto everywhere = on->listen({"", 0});
    REQUIRE_MESSAGE(everywhere, everywhere.error().text());
    for (const auto& host : addresses_of(candidate)) {
      CAPTURE(host);
      auto alone = connect_to_itself(*on, {queue.get(), 8, 8}, host);
      CHECK(alone.client->peer().host == host);
      auto client =
          on->connect({host, (*everywhere)->local().port}, {queue.get(), 8, 8}, {}, patience);
      REQUIRE_MESSAGE(client, client.error().text());
      auto request = wait_for(*on, kind::requested).request;
      auto server = request->accept({queue.get(), 8, 8}, {});
      REQUIRE_MESSAGE(server, server.error().text());
      REQUIRE((*server)->post_receive(1, {}));
      wait_for(*on, kind::established);
      wait_for(*on, kind::established);
      work_request nothing; // a send of no bytes
      nothing.id = 2;
      REQUIRE((*client)->post(nothing));
      CHECK(wait_for(*queue).status == errc::none);
      CHECK(wait_for(*queue).status == errc::none);
    }
  }
}

TEST_CASE("a device can be closed while its connections are being set up") {
  for (const auto& candidate : usable_adapters()) {
    CAPTURE(candidate.name);
    // It never answers.
    auto silent = open(candidate);
    auto listening = silent->listen({candidate.address, 0});
    REQUIRE(listening);
    auto on = open(candidate);
    auto queue = make_queue(*on);
    endpoint where{candidate.address, (*listening)->local().port};
    auto pair = on->connect(where, {queue.get(), 8, 8}, {}, patience);
    REQUIRE(pair);
    std::optional<connection_event> asked;
    auto deadline = std::chrono::steady_clock::now() + patience;
    while (!asked) {
      REQUIRE(std::chrono::steady_clock::now() < deadline);
      CHECK_FALSE(on->next_event());
      asked = silent->next_event();
    }
    CHECK(asked->what == kind::requested);
    pair->reset();
    queue.reset();
    on.reset();
    // A neighbour can be reached at once.
    auto next = open(candidate);
    auto next_queue = make_queue(*next);
    CHECK(connect_to_itself(*next, {next_queue.get(), 8, 8}, candidate.address).client);
  }
}

TEST_CASE("addresses of other devices are refused with what the adapter has") {
  for (const auto& candidate : usable_adapters()) {
    CAPTURE(candidate.name);
    auto on = open(candidate);
    auto queue = make_queue(*on);
    std::vector<std::string> foreign{"192.0.2.1"};
    for (const auto& other : usable_adapters())
      if (other.name != candidate.name)
        foreign.push_back(other.address);
    for (const auto& host : foreign) {
      auto listening = on->listen({host, 0});
      REQUIRE_FALSE(listening);
      CHECK(listening.error().code() == errc::invalid_argument);
      CHECK(listening.error().text().find(host) != std::string::npos);
      CHECK(listening.error().text().find(candidate.address) != std::string::npos);
    }
    auto named = on->connect({"node1.invalid", 1}, {queue.get(), 8, 8}, {}, patience);
    REQUIRE_FALSE(named);
    CHECK(named.error().code() == errc::cannot_resolve);
  }
}

TEST_CASE("an adapter that cannot be used is refused with the reason and the remedy") {
  for (const auto& candidate : list_verbs_devices()) {
    if (candidate.usable)
      continue;
    CAPTURE(candidate.name);
    CHECK_FALSE(candidate.detail.empty());
    auto opened = open_verbs_device(candidate.name.substr(6));
    REQUIRE_FALSE(opened);
    CHECK(opened.error().code() == errc::no_such_device);
    CHECK(opened.error().text().find(candidate.detail) != std::string::npos);
    if (addresses_of(candidate).empty())
      CHECK(candidate.detail.find("ip addr add") != std::string::npos);
  }
  auto missing = open_verbs_device("nosuch0");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code() == errc::no_such_device);
  for (const auto& candidate : usable_adapters())
    CHECK(missing.error().text().find(candidate.name.substr(6)) != std::string::npos);
}

TEST_CASE("many pairs share a completion queue, which grows or says that it cannot") {
  for (const auto& candidate : usable_adapters()) {
    CAPTURE(candidate.name);
    auto on = open(candidate);
    auto queue = make_queue(*on, 1);
    std::vector<ends> links;
    // Some 9200 entries: more than a queue is made with.
    for (int i = 0; i < 8; ++i) {
      auto listening = on->listen({"", 0});
      REQUIRE(listening);
      auto client = on->connect({candidate.address, (*listening)->local().port},
                                {queue.get(), 256, 256}, {}, patience);
      if (!client) {
        CHECK(client.error().code() == errc::limit_too_low);
        CHECK(client.error().text().find("completion queue") != std::string::npos);
        break;
      }
      auto server = wait_for(*on, kind::requested).request->accept({queue.get(), 256, 256}, {});
      if (!server) {
        CHECK(server.error().code() == errc::limit_too_low);
        CHECK(wait_for(*on, kind::failed).reason.code() == errc::refused);
        break;
      }
      wait_for(*on, kind::established);
      wait_for(*on, kind::established);
      links.push_back({std::move(*client), std::move(*server)});
    }
    REQUIRE_FALSE(links.empty());
    for (auto& each : links) {
      for (uint64_t id = 0; id < 256; ++id)
        REQUIRE(each.server->post_receive(id, {}));
      each.client->disconnect();
    }
    // Every receive of every pair is flushed: nothing was lost in a full queue.
    for (size_t left = links.size() * 256; left > 0; --left) {
      on->next_event();
      CHECK(wait_for(*queue).status == errc::flushed);
    }
  }
}

TEST_CASE("memory and connections outlive the device object") {
  for (const auto& candidate : usable_adapters()) {
    CAPTURE(candidate.name);
    auto on = open(candidate);
    auto memory = on->allocate(4096, access::remote_write);
    REQUIRE(memory);
    auto queue = make_queue(*on);
    auto pairs = connect_to_itself(*on, {queue.get(), 8, 8}, candidate.address);
    on.reset();
    REQUIRE(pairs.server->post_receive(1, {memory->get(), 0, 100}));
    (*memory)->data()[200] = std::byte{42};
    work_request work;
    work.id = 2;
    work.local = {memory->get(), 200, 1};
    REQUIRE(pairs.client->post(work));
    CHECK(wait_for(*queue).status == errc::none);
    CHECK(wait_for(*queue).status == errc::none);
    CHECK((*memory)->data()[0] == std::byte{42});
  }
}

TEST_CASE("a memlock limit that is too low is named with its remedy") {
  for (const auto& candidate : usable_adapters()) {
    CAPTURE(candidate.name);
    child limited{[&] {
      set_log_level(spdlog::level::off); // the kernel mistrusts descriptors of another user
      auto opened = open_verbs_device(candidate.name.substr(6));
      rlimit limit{1 << 20, 1 << 20};
      // Root may lock as much as it likes.
      if (!opened || setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || seteuid(65534) != 0)
        return 1;
      auto memory = (*opened)->allocate(size_t{8} << 20, access::local);
      if (seteuid(0) != 0 || memory)
        return 2;
      const auto& text = memory.error().text();
      if (memory.error().code() != errc::limit_too_low)
        return 3;
      bool complete = text.find("8388608 bytes") != std::string::npos &&
                      text.find("RLIMIT_MEMLOCK is 1 MiB") != std::string::npos &&
                      text.find("ulimit -l unlimited") != std::string::npos;
      return complete ? 0 : 4;
    }};
    CHECK(limited.wait() == 0);
  }
}

TEST_CASE("disconnecting from a peer that is stopped ends all the same") {
  for (const auto& candidate : usable_adapters()) {
    CAPTURE(candidate.name);
    int port_pipe[2];
    REQUIRE(pipe(port_pipe) == 0);
    child peer{[&] {
      auto opened = open_verbs_device(candidate.name.substr(6));
      if (!opened)
        return 1;
      auto queue = (*opened)->create_completion_queue(16);
      auto listening = (*opened)->listen({"", 0});
      if (!queue || !listening)
        return 2;
      auto port = (*listening)->local().port;
      if (write(port_pipe[1], &port, sizeof port) != sizeof port)
        return 3;
      auto pair = wait_for(**opened, kind::requested).request->accept({queue->get(), 8, 8}, {});
      if (!pair)
        return 4;
      wait_for(**opened, kind::established);
      raise(SIGSTOP);
      return 0;
    }};
    close(port_pipe[1]);
    uint16_t port = 0;
    REQUIRE(read(port_pipe[0], &port, sizeof port) == sizeof port);
    close(port_pipe[0]);
    auto on = open(candidate);
    auto queue = make_queue(*on);
    auto pair = on->connect({candidate.address, port}, {queue.get(), 8, 8}, {}, patience);
    REQUIRE(pair);
    REQUIRE((*pair)->post_receive(5, {}));
    wait_for(*on, kind::established);
    (*pair)->disconnect();
    auto ended = wait_for(*on, kind::disconnected);
    CHECK(ended.pair == pair->get());
    CHECK_FALSE(ended.reason.text().empty());
    auto flushed = wait_for(*queue);
    CHECK(flushed.id == 5);
    CHECK(flushed.status == errc::flushed);
  }
}

int main(int argc, char** argv) {
  // In a process of its own: what libibverbs has opened should not be shared with forked children.
  child counting{[] { return usable_adapters().empty() ? 77 : 0; }};
  if (counting.wait() != 0) {
    std::puts("skipped: no usable RDMA adapter on this machine");
    return 77;
  }
  return doctest::Context{argc, argv}.run();
}
