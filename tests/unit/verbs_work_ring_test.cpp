#include <doctest/doctest.h>
#include <verbs/work_ring.hpp>

using troupe::errc;
using troupe::transport::opcode;
using troupe::transport::verbs::ended_work;
using troupe::transport::verbs::work_ring;

namespace {

struct told {
  uint64_t id;
  errc status;
  bool operator==(const told&) const = default;
};

class ring_under_test {
public:
  ring_under_test(uint32_t depth, uint32_t slots_per_request = 1, bool all_signaled = false)
      : ring(depth, slots_per_request, all_signaled) {}

  bool end(uint32_t slot, errc status = errc::none) {
    return ring.end(slot, status, [this](const ended_work& e) { out.push_back({e.id, e.status}); });
  }
  void flush() {
    ring.flush([this](const ended_work& e) { out.push_back({e.id, e.status}); });
  }
  std::vector<told> take() { return std::exchange(out, {}); }

  work_ring ring;
  std::vector<told> out;
};

} // namespace

TEST_CASE("a ring takes exactly its depth of signaled work") {
  ring_under_test t{4};
  for (uint64_t id = 0; id < 4; ++id) {
    CHECK(t.ring.room() == 4 - id);
    CHECK(t.ring.push({id, opcode::send}).signal);
  }
  CHECK(t.ring.room() == 0);
  CHECK(t.end(0));
  CHECK(t.ring.room() == 1);
  CHECK(t.take() == std::vector<told>{{0, errc::none}});
}

TEST_CASE("the end of signaled work frees the unsignaled work before it, silently") {
  ring_under_test t{16};
  for (uint64_t id = 0; id < 3; ++id)
    CHECK_FALSE(t.ring.push({id, opcode::write, false}).signal);
  auto last = t.ring.push({3, opcode::write});
  CHECK(t.end(last.slot));
  CHECK(t.take() == std::vector<told>{{3, errc::none}});
  CHECK(t.ring.outstanding_slots() == 0);
}

TEST_CASE("unsignaled work alone never fills a ring for good") {
  ring_under_test t{8};
  uint64_t forced = 0;
  for (uint64_t id = 0; id < 1000; ++id) {
    REQUIRE(t.ring.room() > 0);
    auto place = t.ring.push({id, opcode::send, false});
    if (place.signal) {
      ++forced;
      CHECK(t.end(place.slot));
    }
  }
  CHECK(forced == 500); // every second of depth 8
  CHECK(t.take().empty());
}

TEST_CASE("a batch of the whole depth fits behind an unsignaled tail") {
  for (uint32_t depth : {1U, 2U, 7U, 8U, 64U}) {
    CAPTURE(depth);
    ring_under_test t{depth};
    auto tail = depth / 4 > 1 ? depth / 4 - 1 : 0;
    for (uint32_t i = 0; i < tail; ++i)
      REQUIRE_FALSE(t.ring.push({i, opcode::send, false}).signal);
    CHECK(t.ring.room() == depth);
    for (uint32_t i = 0; i < depth; ++i)
      t.ring.push({100 + i, opcode::send});
    CHECK(t.ring.room() == 0);
    CHECK(t.ring.outstanding_slots() <= t.ring.slots());
  }
}

TEST_CASE("work that ends out of order is told in order") {
  ring_under_test t{8};
  auto read = t.ring.push({1, opcode::read});
  auto write = t.ring.push({2, opcode::write, false});
  auto send = t.ring.push({3, opcode::send});
  CHECK_FALSE(write.signal);
  CHECK(t.end(send.slot));
  CHECK(t.take().empty());
  CHECK(t.end(read.slot));
  CHECK(t.take() == std::vector<told>{{1, errc::none}, {3, errc::none}});
}

TEST_CASE("an unsignaled read is waited for all the same") {
  ring_under_test t{8};
  auto read = t.ring.push({1, opcode::read, false});
  CHECK(read.signal);
  auto send = t.ring.push({2, opcode::send});
  CHECK(t.end(send.slot));
  CHECK(t.take().empty());
  CHECK(t.end(read.slot));
  CHECK(t.take() == std::vector<told>{{2, errc::none}});
}

TEST_CASE("failures are told whether signaled or not, successes before them are not lost") {
  ring_under_test t{16};
  t.ring.push({0, opcode::send, false});
  auto bad = t.ring.push({1, opcode::send, false});
  t.ring.push({2, opcode::send, false});
  t.ring.push({3, opcode::send});
  CHECK(t.end(bad.slot, errc::remote_access));
  CHECK(t.take() == std::vector<told>{{1, errc::remote_access}});
  t.flush();
  CHECK(t.take() == std::vector<told>{{2, errc::flushed}, {3, errc::flushed}});
  CHECK(t.ring.room() == 16);
}

TEST_CASE("both halves of an emulated notification count once and are told once") {
  ring_under_test t{2, 2};
  CHECK(t.ring.slots() == 4);
  auto post = [&](uint64_t id, bool signaled = true) {
    auto write = t.ring.push({id, opcode::write_notify, signaled, true});
    auto send = t.ring.push({id, opcode::write_notify, signaled});
    CHECK_FALSE(write.signal);
    CHECK(send.signal);
    return std::pair{write.slot, send.slot};
  };
  auto first = post(1);
  auto second = post(2);
  CHECK(t.ring.room() == 0);
  CHECK(t.end(first.second));
  CHECK(t.take() == std::vector<told>{{1, errc::none}});
  CHECK(t.end(second.first, errc::remote_access));
  CHECK(t.end(second.second, errc::flushed));
  CHECK(t.take() == std::vector<told>{{2, errc::remote_access}});
  CHECK(t.ring.room() == 2);
  // The write went through, its announcement did not.
  auto third = post(3, false);
  CHECK(t.end(third.second, errc::flushed));
  CHECK(t.take() == std::vector<told>{{3, errc::flushed}});
  post(4);
  t.flush();
  CHECK(t.take() == std::vector<told>{{4, errc::flushed}});
}

TEST_CASE("the end of nothing is noticed") {
  ring_under_test t{4};
  CHECK_FALSE(t.end(0));
  CHECK_FALSE(t.end(1'000'000));
  auto place = t.ring.push({1, opcode::send});
  CHECK_FALSE(t.end((place.slot + 1) % t.ring.slots()));
  CHECK(t.end(place.slot));
  CHECK_FALSE(t.end(place.slot, errc::flushed));
  CHECK(t.take().size() == 1);
}

TEST_CASE("a ring for receives has as many slots as receives") {
  ring_under_test t{5, 1, true};
  CHECK(t.ring.slots() == 5);
  for (int round = 0; round < 3; ++round)
    for (uint64_t id = 0; id < 5; ++id)
      CHECK(t.end(t.ring.push({id, opcode::receive}).slot));
  CHECK(t.take().size() == 15);
}
