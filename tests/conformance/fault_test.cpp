// What a wrong key, a missing right, a wrong address or length does: the operation fails, memory
// stays as it was, everything else is flushed and both sides learn of it.
#include "rig.hpp"

#include <cstring>
#include <limits>

using namespace conformance;

namespace {

constexpr size_t kib = 1024;

// An iWARP adapter may tell of a refusal by the end of the connection only, and the send that was
// posted behind may have gone through.
void check_ends_late(rig& r, const work_request& work) {
  bool ended = false;
  bool receive_flushed = false;
  while (!ended || !receive_flushed) {
    auto done = r.next(r.client);
    if (done.id == 60) {
      CHECK(done.status == errc::flushed);
      receive_flushed = true;
      continue;
    }
    CHECK((done.status == errc::none || done.status == errc::remote_access ||
           done.status == errc::flushed || done.status == errc::disconnected));
    if (done.id != work.id)
      continue;
    CHECK(done.op == work.op);
    if (work.op == opcode::read)
      CHECK(done.status != errc::none);
    ended = true;
  }
  auto at_server = r.next(r.server);
  CHECK(at_server.id == 50);
  CHECK((at_server.status == errc::none || at_server.status == errc::flushed));
}

void check_ends_at_once(rig& r, const work_request& work) {
  auto first = r.next(r.client);
  CHECK(first.id == work.id);
  CHECK(first.op == work.op);
  CHECK(first.status == errc::remote_access);
  // What was posted after it is flushed, whether signaled or not, and so are the receives.
  bool send_flushed = false;
  bool receive_flushed = false;
  while (!receive_flushed || !send_flushed) {
    auto done = r.next(r.client);
    if (done.id == work.id + 1)
      send_flushed = true;
    else
      receive_flushed = done.id == 60;
    CHECK(done.status == errc::flushed);
  }
  auto at_server = r.next(r.server);
  CHECK(at_server.id == 50);
  CHECK(at_server.status == errc::flushed);
}

// The operation `work` must not touch memory, and must break the connection.
void check_refused(rig& r, const work_request& work) {
  REQUIRE(r.server_pair->post_receive(50, {}));
  REQUIRE(r.client_pair->post_receive(60, {}));
  std::vector<work_request> batch{work, send_request(work.id + 1, {})};
  batch[1].signaled = false;
  REQUIRE(r.client_pair->post(batch));
  if (reports_late(r.client.opened->limits()))
    check_ends_late(r, work);
  else
    check_ends_at_once(r, work);
  auto event = r.next_event(r.server, connection_event::kind::disconnected);
  CHECK(event.pair == r.server_pair.get());
  r.next_event(r.client, connection_event::kind::disconnected);
}

struct target {
  memory_region* region;
  remote_address place;
};

// Runs every kind of one-sided operation against a place that must refuse it.
void check_all_refused(const std::function<target(rig&, opcode)>& aim, size_t length) {
  for (auto op : {opcode::write, opcode::read, opcode::write_notify, opcode::fetch_add,
                  opcode::compare_swap}) {
    CAPTURE(to_string(op));
    rig r;
    bool atomic = op == opcode::fetch_add || op == opcode::compare_swap;
    if (atomic && !r.client.opened->limits().atomics)
      continue;
    auto& here = r.memory(r.client, 64 * kib);
    fill(here.bytes(), 1);
    auto [region, place] = aim(r, op);
    // The kernel's soft iWARP checks key and bounds of a read, but not the right.
    if (op == opcode::read && reports_late(r.client.opened->limits()) && region &&
        !allows(region->rights(), rights::remote_read))
      continue;
    auto work = write_request(1, slice(here, 0, atomic ? 8 : length), place);
    work.op = op;
    work.operand = 0;
    work.swap = 99;
    check_refused(r, work);
    CHECK(filled(here.bytes(), 1));
    if (region)
      CHECK(untouched(region->bytes()));
    // Pairs go first: a region must outlive the work that names it.
    r.client_pair.reset();
    r.server_pair.reset();
  }
}

} // namespace

TEST_CASE("a wrong key is refused") {
  check_all_refused(
      [](rig& r, opcode) {
        auto& there = r.memory(r.server, 64 * kib, every_right);
        auto place = at(there);
        place.key ^= 0x5a5a5a00U;
        return target{&there, place};
      },
      100);
}

TEST_CASE("key 0 and address 0 are refused") {
  check_all_refused([](rig&, opcode) { return target{nullptr, {}}; }, 100);
}

TEST_CASE("a missing right is refused") {
  check_all_refused(
      [](rig& r, opcode op) {
        auto others = rights::remote_read | rights::remote_write;
        if (op == opcode::read)
          others = rights::remote_write | rights::remote_atomic;
        else if (op == opcode::write || op == opcode::write_notify)
          others = rights::remote_read | rights::remote_atomic;
        auto& there = r.memory(r.server, 64 * kib, others);
        return target{&there, at(there)};
      },
      100);
}

TEST_CASE("memory without any remote right is refused") {
  check_all_refused(
      [](rig& r, opcode) {
        auto& there = r.memory(r.server, 64 * kib, rights::local);
        return target{&there, at(there)};
      },
      100);
}

TEST_CASE("an address below the region is refused") {
  check_all_refused(
      [](rig& r, opcode) {
        auto& there = r.memory(r.server, 64 * kib, every_right);
        auto place = at(there);
        place.address -= 8;
        return target{&there, place};
      },
      100);
}

TEST_CASE("a range that ends above the region is refused") {
  check_all_refused(
      [](rig& r, opcode) {
        auto& there = r.memory(r.server, 64 * kib, every_right);
        // 8 bytes from here would still fit for nobody: the last word ends one byte outside.
        auto place = at(there, there.size());
        return target{&there, place};
      },
      100);
  check_all_refused(
      [](rig& r, opcode op) {
        auto& there = r.memory(r.server, 64 * kib, every_right);
        bool atomic = op == opcode::fetch_add || op == opcode::compare_swap;
        return target{&there, at(there, there.size() - (atomic ? 0 : 99))};
      },
      100);
}

TEST_CASE("a range that overflows is refused") {
  check_all_refused(
      [](rig& r, opcode) {
        auto& there = r.memory(r.server, 64 * kib, every_right);
        auto place = at(there);
        place.address = std::numeric_limits<uint64_t>::max() - 7;
        return target{&there, place};
      },
      100);
}

TEST_CASE("a revoked key is refused") {
  check_all_refused(
      [](rig& r, opcode) {
        auto gone = r.server.opened->allocate(64 * kib, every_right);
        REQUIRE(gone);
        // In use before, so that a device that remembers it must forget it.
        auto& here = r.memory(r.client, 8);
        REQUIRE(r.client_pair->post(write_request(7, slice(here, 0, 8), at(**gone))));
        CHECK(r.next(r.client).status == errc::none);
        auto place = at(**gone);
        gone->reset();
        return target{nullptr, place};
      },
      100);
}

TEST_CASE("a revoked key of ordinary memory is refused, and another region is unharmed") {
  std::vector<std::byte> memory(64 * kib);
  check_all_refused(
      [&](rig& r, opcode) {
        auto gone = r.server.opened->register_memory(memory, every_right);
        REQUIRE(gone);
        auto place = at(**gone);
        gone->reset();
        // Takes whatever the old key's place was.
        auto& next = r.memory(r.server, 64 * kib, every_right);
        return target{&next, place};
      },
      100);
  CHECK(untouched(memory));
}

TEST_CASE("a message longer than the receive fails both sides") {
  for (size_t length : {size_t{101}, 64 * kib}) {
    CAPTURE(length);
    rig r;
    auto& here = r.memory(r.client, 64 * kib);
    auto& there = r.memory(r.server, 64 * kib);
    fill(here.bytes(), 1);
    REQUIRE(r.server_pair->post_receive(1, slice(there, 0, 100)));
    REQUIRE(r.server_pair->post_receive(2, slice(there, 200, 100)));
    REQUIRE(r.client_pair->post_receive(4, {}));
    REQUIRE(r.client_pair->post(send_request(3, slice(here, 0, length))));
    auto received = r.next(r.server);
    CHECK(received.id == 1);
    // An iWARP adapter may only end the connection.
    if (!reports_late(r.server.opened->limits()))
      CHECK(received.status == errc::local_length);
    else
      CHECK(received.status != errc::none);
    auto flushed = r.next(r.server);
    CHECK(flushed.id == 2);
    CHECK(flushed.status == errc::flushed);
    bool receive_flushed = false;
    while (!receive_flushed) {
      auto done = r.next(r.client);
      if (done.id == 4) {
        CHECK(done.status == errc::flushed);
        receive_flushed = true;
      }
    }
    r.next_event(r.client, connection_event::kind::disconnected);
    r.next_event(r.server, connection_event::kind::disconnected);
    CHECK(untouched(there.bytes().subspan(100)));
  }
}

TEST_CASE("a slice outside its region is refused at posting") {
  rig r;
  auto& here = r.memory(r.client, 4 * kib);
  auto size = here.size();
  auto most = std::numeric_limits<size_t>::max();
  for (auto wrong : {slice(here, 0, size + 1), slice(here, size, 1), slice(here, 1, most),
                     slice(here, most, 2), local_slice{nullptr, 0, 1}}) {
    auto refused = r.client_pair->post(send_request(1, wrong));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code() == errc::invalid_argument);
    auto receive = r.client_pair->post_receive(1, wrong);
    REQUIRE_FALSE(receive);
    CHECK(receive.error().code() == errc::invalid_argument);
  }
  // One wrong entry spoils the batch: nothing of it was posted.
  std::vector<work_request> batch{send_request(1, slice(here, 0, 1)),
                                  send_request(2, slice(here, 0, size + 1))};
  REQUIRE_FALSE(r.client_pair->post(batch));
  auto& there = r.memory(r.server, 4 * kib);
  REQUIRE(r.server_pair->post_receive(3, slice(there)));
  REQUIRE(r.client_pair->post(send_request(4, slice(here, 0, 5))));
  CHECK(r.next(r.server).length == 5);
  CHECK(r.next(r.client).id == 4);
}

TEST_CASE("memory of another device is refused at posting") {
  rig r;
  auto& foreign = r.memory(r.server, 4 * kib, every_right);
  auto refused = r.client_pair->post(send_request(1, slice(foreign, 0, 8)));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == errc::invalid_argument);
  auto receive = r.client_pair->post_receive(1, slice(foreign));
  REQUIRE_FALSE(receive);
  CHECK(receive.error().code() == errc::invalid_argument);
}

TEST_CASE("a read goes only where reads may go") {
  rig r;
  auto& there = r.memory(r.server, 4 * kib, every_right);
  auto& here = r.memory(r.client, 4 * kib, rights::remote_read | rights::remote_write);
  auto refused = r.client_pair->post(read_request(1, slice(here, 0, 8), at(there)));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == errc::invalid_argument);
  CHECK(refused.error().text().find("read_sink") != std::string::npos);
}

TEST_CASE("a length above the device's largest message is refused at posting") {
  rig r;
  auto most = r.client.opened->limits().max_message;
  // Pinning more than this would be unkind to the machine; the soft device pins nothing.
  if (most > 16 * kib * kib && !under_test().device.starts_with("soft"))
    return;
  auto& here = r.memory(r.client, most + 1);
  for (auto op : {opcode::send, opcode::write, opcode::read, opcode::write_notify}) {
    auto work = write_request(1, slice(here, 0, most + 1), {});
    work.op = op;
    auto refused = r.client_pair->post(work);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code() == errc::invalid_argument);
  }
}
