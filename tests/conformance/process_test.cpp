// Two real processes: what passes between them, and what happens when one is killed.
#include "rig.hpp"
#include "support/child_process.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace conformance;
using kind = connection_event::kind;

namespace {

constexpr size_t buffer_size = 64 * 1024;

/// This executable, playing a role.
support::launch as(const std::string& role, const std::string& argument) {
  support::launch how;
  how.argv = {support::this_executable(), "--device=" + under_test().device, "--role=" + role,
              "--argument=" + argument};
  how.captures_errors = false;
  return how;
}

// This process as the client of another in `role`.
class pair_of_processes {
public:
  pair_of_processes(const std::string& role, const std::string& argument, uint32_t receives)
      : other(as(role, argument)) {
    auto text = other.line();
    REQUIRE(text.starts_with("port "));
    auto port = static_cast<uint16_t>(std::stoi(text.substr(5)));
    auto made = here.opened->allocate(buffer_size * 16, every_right);
    REQUIRE(made);
    memory = std::move(*made);
    auto connecting = here.opened->connect({under_test().address, port},
                                           {here.completions.get(), 64, 64}, {}, patience);
    REQUIRE_MESSAGE(connecting, connecting.error().text());
    pair = std::move(*connecting);
    for (uint32_t i = 0; i < receives; ++i)
      REQUIRE(pair->post_receive(i, slice(*memory, i * buffer_size / 2, buffer_size / 2)));
    REQUIRE(turn_until({&here}, [&] { return here.take_event(kind::established).has_value(); }));
  }

  completion next() {
    REQUIRE_MESSAGE(turn_until({&here}, [&] { return !here.done.empty(); }), "no completion");
    auto first = here.done.front();
    here.done.pop_front();
    return first;
  }

  void wait_for_disconnect() {
    std::optional<connection_event> event;
    CHECK(turn_until({&here}, [&] {
      event = here.take_event(kind::disconnected);
      return event.has_value();
    }));
    if (event) {
      CHECK(event->pair == pair.get());
      CHECK_FALSE(event->reason.text().empty());
    }
  }

  support::child_process other;
  side here;
  std::unique_ptr<memory_region> memory;
  std::unique_ptr<queue_pair> pair;
};

// Where the other process's region is: its first message says so.
remote_region place_of_region(pair_of_processes& two) {
  auto first = two.next();
  remote_region place;
  REQUIRE(first.op == opcode::receive);
  REQUIRE(first.length == sizeof place);
  std::memcpy(&place, two.memory->data() + first.id * buffer_size / 2, sizeof place);
  return place;
}

} // namespace

TEST_CASE("two processes send, write and read") {
  pair_of_processes two{"echo", "", 4};
  auto place = place_of_region(two);
  CHECK(place.length >= buffer_size);
  auto upper = two.memory->bytes().subspan(buffer_size * 8);
  auto part = [&](size_t offset, size_t length) {
    return slice(*two.memory, buffer_size * 8 + offset, length);
  };
  fill(upper.first(buffer_size), 3);
  REQUIRE(two.pair->post(write_request(100, part(0, buffer_size), {place.address, place.key})));
  REQUIRE(two.pair->post(
      read_request(101, part(buffer_size, buffer_size), {place.address, place.key})));
  CHECK(two.next().id == 100);
  CHECK(two.next().id == 101);
  CHECK(filled(upper.subspan(buffer_size, buffer_size), 3));

  REQUIRE(two.pair->post(send_request(102, part(0, 20000))));
  bool echoed = false;
  for (int i = 0; i < 2; ++i) {
    auto done = two.next();
    CHECK(done.status == errc::none);
    if (done.op != opcode::receive)
      continue;
    CHECK(done.length == 20000);
    CHECK(filled(two.memory->bytes().subspan(done.id * buffer_size / 2, 20000), 3));
    echoed = true;
  }
  CHECK(echoed);
  two.pair->disconnect();
  two.wait_for_disconnect();
  CHECK(two.other.wait().code == 0);
}

TEST_CASE("the memory of a process that stands still can be read and written") {
  // Over TCP it has to do its part.
  if (under_test().device == "soft:tcp")
    return;
  pair_of_processes two{"echo", "", 4};
  auto place = place_of_region(two);
  auto write = [&](uint64_t id, uint32_t seed) {
    fill(two.memory->bytes().first(1000), seed);
    REQUIRE(
        two.pair->post(write_request(id, slice(*two.memory, 0, 1000), {place.address, place.key})));
    CHECK(two.next().id == id);
  };
  write(100, 1);
  // A device that has to be given access first has had its time for that.
  turn_for({&two.here}, std::chrono::milliseconds{100});
  two.other.stop();
  write(101, 2);
  REQUIRE(two.pair->post(
      read_request(102, slice(*two.memory, 5000, 1000), {place.address, place.key})));
  auto read = two.next();
  CHECK(read.id == 102);
  CHECK(read.status == errc::none);
  CHECK(filled(two.memory->bytes().subspan(5000, 1000), 2));
  two.other.go_on();
}

TEST_CASE("the death of an idle peer is noticed and flushes") {
  pair_of_processes two{"sink", "4", 3};
  two.other.kill();
  two.wait_for_disconnect();
  for (uint64_t id = 0; id < 3; ++id) {
    auto flushed = two.next();
    CHECK(flushed.id == id);
    CHECK(flushed.status == errc::flushed);
  }
}

TEST_CASE("the death of a peer fails the work that is outstanding") {
  pair_of_processes two{"sink", "2", 3};
  if (reports_late(two.here.opened->limits()))
    return; // iWARP: a send that no receive waits for would break the connection before
  for (uint64_t id = 10; id < 20; ++id)
    REQUIRE(two.pair->post(send_request(id, slice(*two.memory, 0, buffer_size))));
  CHECK(two.next().id == 10);
  CHECK(two.next().id == 11);
  two.other.kill();
  two.wait_for_disconnect();
  std::vector<uint64_t> sends;
  std::vector<uint64_t> receives;
  while (sends.size() < 8 || receives.size() < 3) {
    auto done = two.next();
    // A device may report a send as done once the system has taken it.
    if (done.op == opcode::receive)
      CHECK(done.status == errc::flushed);
    (done.op == opcode::receive ? receives : sends).push_back(done.id);
  }
  CHECK(sends == std::vector<uint64_t>{12, 13, 14, 15, 16, 17, 18, 19});
  CHECK(receives == std::vector<uint64_t>{0, 1, 2});
}

TEST_CASE("what a peer sent before it was killed still arrives") {
  constexpr uint32_t count = 5;
  pair_of_processes two{"burst", std::to_string(count), count + 2};
  auto how = two.other.wait();
  REQUIRE(how.code == 128 + SIGKILL);
  for (uint32_t i = 0; i < count; ++i) {
    auto received = two.next();
    CHECK(received.id == i);
    CHECK(received.status == errc::none);
    CHECK(received.length == 1000);
    CHECK(filled(two.memory->bytes().subspan(i * buffer_size / 2, 1000), i));
  }
  for (uint64_t id = count; id < count + 2; ++id) {
    auto flushed = two.next();
    CHECK(flushed.id == id);
    CHECK(flushed.status == errc::flushed);
  }
  two.wait_for_disconnect();
}

TEST_CASE("children that are forked or spawned do not disturb registered memory, nor it them") {
  rig r;
  constexpr size_t size = buffer_size;
  auto& here = r.memory(r.client, 2 * size, every_right);
  auto& there = r.memory(r.server, size, every_right);
  std::vector<std::byte> ordinary(size);
  auto registered = r.server.opened->register_memory(ordinary, every_right);
  REQUIRE(registered);
  fill(ordinary, 2);
  int gate[2];
  REQUIRE(pipe2(gate, O_CLOEXEC) == 0);
  auto child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::close(gate[1]);
    bool absent = msync(there.data(), there.size(), MS_ASYNC) != 0 && errno == ENOMEM;
    bool copied = filled(ordinary, 2);
    fill(ordinary, 9);
    char byte = 0;
    while (::read(gate[0], &byte, 1) < 0 && errno == EINTR) // until the parent is done
      ;
    _exit(absent && copied && filled(ordinary, 9) ? 0 : 1);
  }
  // Whoever writes first after a fork gets a copy of the page. It must not be us: the device has
  // the old one.
  fill(ordinary, 3);
  fill(there.bytes(), 4);
  fill(here.bytes().first(size), 5);
  for (auto target : {registered->get(), static_cast<memory_region*>(&there)}) {
    auto before = target == &there ? 4U : 3U;
    REQUIRE(r.client_pair->post(read_request(1, slice(here, size, size), at(*target))));
    CHECK(r.next(r.client).status == errc::none);
    CHECK(filled(here.bytes().subspan(size, size), before));
    REQUIRE(r.client_pair->post(write_request(2, slice(here, 0, size), at(*target))));
    CHECK(r.next(r.client).status == errc::none);
    CHECK(filled(target->bytes().first(size), 5));
    char program[] = "true";
    char* argv[] = {program, nullptr};
    pid_t spawned = -1;
    REQUIRE(posix_spawnp(&spawned, program, nullptr, nullptr, argv, environ) == 0);
    REQUIRE(r.server_pair->post_receive(3, slice(*target)));
    fill(here.bytes().first(size), 6);
    REQUIRE(r.client_pair->post(send_request(4, slice(here, 0, size))));
    CHECK(r.next(r.server).length == size);
    CHECK(r.next(r.client).status == errc::none);
    CHECK(filled(target->bytes().first(size), 6));
    fill(here.bytes().first(size), 5);
    int how = 0;
    REQUIRE(waitpid(spawned, &how, 0) == spawned);
    CHECK(WEXITSTATUS(how) == 0);
  }
  ::close(gate[0]);
  ::close(gate[1]);
  int how = 0;
  REQUIRE(waitpid(child, &how, 0) == child);
  CHECK(WIFEXITED(how));
  CHECK(WEXITSTATUS(how) == 0);
  r.client_pair.reset();
  r.server_pair.reset();
}
