#include <doctest/doctest.h>
#include <map>
#include <random>
#include <set>
#include <troupe/framework/membership.hpp>

using namespace troupe;
using namespace std::chrono_literals;
using kind = member_event::kind;

namespace {

constexpr membership::limits bounds{1500ms, 3000ms};
const member::time_point start{100h};

member node(std::string id, incarnation_id incarnation) {
  member who;
  who.id = std::move(id);
  who.incarnation = incarnation;
  who.roles = {false, true};
  who.address = {"10.0.0.1", 4747};
  who.capacity = {4, 8ull << 30, 64};
  return who;
}

} // namespace

TEST_CASE("a node joins, is heard from, and leaves") {
  membership table{bounds};
  auto joined = table.join(node("a", 7), start);
  REQUIRE(joined);
  REQUIRE(joined->size() == 1);
  CHECK(joined->front().what == kind::joined);
  CHECK(joined->front().who.id == "a");
  CHECK(joined->front().who.capacity == node_capacity{4, 8ull << 30, 64});
  CHECK(table.live_count() == 1);
  CHECK(table.holder_of("a")->incarnation == 7);
  CHECK(table.find(7)->state == member_state::alive);

  auto heard = table.heard_from(7, start + 1s);
  REQUIRE(heard);
  CHECK_FALSE(*heard);
  CHECK(table.find(7)->last_heard == start + 1s);
  REQUIRE(table.heard_from(7, start));
  CHECK(table.find(7)->last_heard == start + 1s);

  auto left = table.leave(7, start);
  REQUIRE(left);
  CHECK(left->what == kind::left);
  CHECK(table.find(7)->state == member_state::left);
  CHECK(table.live_count() == 0);
  CHECK_FALSE(table.holder_of("a"));
  CHECK_FALSE(table.leave(7, start));
  CHECK_FALSE(table.lost(7, "again", false, start));
}

TEST_CASE("an id belongs to one live incarnation") {
  membership table{bounds};
  REQUIRE(table.join(node("a", 1), start));
  auto clone = table.join(node("a", 2), start);
  REQUIRE_FALSE(clone);
  CHECK(clone.error().code() == errc::already_exists);
  CHECK(clone.error().text().starts_with("node id 'a' is taken by a live node at 10.0.0.1:4747"));
  CHECK_FALSE(table.find(2));

  auto died = table.lost(1, "its connection broke", false, start);
  REQUIRE(died);
  CHECK(died->what == kind::died);
  CHECK(died->reason == "its connection broke");
  CHECK(died->who.state == member_state::dead);
  REQUIRE(table.join(node("a", 2), start + 1ms));
  CHECK(table.holder_of("a")->incarnation == 2);

  SUBCASE("what the old incarnation says is rejected") {
    auto late = table.heard_from(1, start + 2ms);
    REQUIRE_FALSE(late);
    CHECK(late.error().code() == errc::not_found);
    CHECK(late.error().text().starts_with("node 'a' (incarnation 0000000000000001) is no live"));
    CHECK_FALSE(table.lost(1, "late", false, start));
    CHECK(table.holder_of("a")->incarnation == 2);
  }
  SUBCASE("the old incarnation cannot come back") {
    table.lost(2, "", false, start);
    auto back = table.join(node("a", 1), start + 2ms);
    REQUIRE_FALSE(back);
    CHECK(back.error().code() == errc::refused);
  }
  SUBCASE("members are listed by id, the live one last") {
    REQUIRE(table.join(node("Z", 9), start));
    auto all = table.members();
    REQUIRE(all.size() == 3);
    CHECK(all[0].id == "Z");
    CHECK(all[1].incarnation == 1);
    CHECK(all[2].incarnation == 2);
  }
}

TEST_CASE("a holder that nobody can connect to is named without an address") {
  membership table{bounds};
  auto holder = node("b", 3);
  holder.address = {};
  REQUIRE(table.join(holder, start));
  CHECK(table.join(node("b", 4), start)
            .error()
            .text()
            .starts_with("node id 'b' is taken by a live node (incarnation 0000000000000003)"));
}

TEST_CASE("a join that makes no sense is refused") {
  membership table{bounds};
  for (auto id : {"", "a b", "a/b", "\xff"})
    CHECK(table.join(node(id, 1), start).error().code() == errc::invalid_argument);
  CHECK(table.join(node(std::string(64, 'a'), 1), start).error().code() == errc::invalid_argument);
  CHECK(table.join(node("a", 0), start).error().code() == errc::invalid_argument);
  auto idle = node("a", 1);
  idle.roles = {false, false};
  CHECK(table.join(idle, start).error().code() == errc::invalid_argument);
  REQUIRE(table.join(node("a", 1), start));
  CHECK(table.join(node("b", 1), start).error().code() == errc::invalid_argument);
  CHECK(table.members().size() == 1);
}

TEST_CASE("silence makes a member suspect, then dead") {
  membership table{bounds};
  REQUIRE(table.join(node("a", 1), start));
  REQUIRE(table.join(node("b", 2), start));
  std::map<incarnation_id, std::vector<std::pair<kind, member::time_point>>> seen;
  for (auto now = start; now < start + 5s; now += 100ms) {
    REQUIRE(table.heard_from(2, now));
    for (auto& event : table.tick(now))
      seen[event.who.incarnation].emplace_back(event.what, now);
  }
  CHECK(seen[2].empty());
  REQUIRE(seen[1].size() == 2);
  CHECK(seen[1][0] == std::pair{kind::suspected, start + 1500ms});
  CHECK(seen[1][1] == std::pair{kind::died, start + 3s});
  CHECK(table.live_count() == 1);
}

TEST_CASE("a suspect that speaks recovers, also by joining again") {
  membership table{bounds};
  REQUIRE(table.join(node("a", 1), start));
  table.tick(start + 1s);
  auto events = table.tick(start + 2s);
  REQUIRE(events.size() == 1);
  CHECK(events[0].what == kind::suspected);
  CHECK(events[0].reason == "silent for 2s");
  auto clone = table.join(node("a", 2), start + 2s);
  CHECK(clone.error().code() == errc::already_exists);
  SUBCASE("heard from") {
    auto heard = table.heard_from(1, start + 2s);
    REQUIRE(heard);
    REQUIRE(*heard);
    CHECK((*heard)->what == kind::recovered);
  }
  SUBCASE("joined again") {
    auto again = node("a", 1);
    again.capacity.cpus = 2;
    auto joined = table.join(again, start + 2s);
    REQUIRE(joined);
    REQUIRE(joined->size() == 1);
    CHECK(joined->front().what == kind::recovered);
    CHECK(table.find(1)->capacity.cpus == 2);
    CHECK(table.join(again, start + 2s)->empty());
  }
  CHECK(table.find(1)->state == member_state::alive);
  CHECK(table.tick(start + 3s).empty());
}

TEST_CASE("a controller that was stopped declares nobody dead for it") {
  membership table{bounds};
  REQUIRE(table.join(node("a", 1), start));
  REQUIRE(table.join(node("b", 2), start));
  CHECK(table.tick(start).empty());
  CHECK(table.tick(start + 1400ms).empty());
  // Stopped for an hour.
  auto resumed = start + 1400ms + 1h;
  CHECK(table.tick(resumed).empty());
  CHECK(table.live_count() == 2);
  // Then the messages that waited are handled: one of them is from b.
  REQUIRE(table.heard_from(2, resumed + 1ms));
  // The silence before the stop still counts, so a's end is not put off for ever.
  auto events = table.tick(resumed + 100ms);
  REQUIRE(events.size() == 1);
  CHECK(events[0].who.id == "a");
  CHECK(events[0].what == kind::suspected);
  CHECK(table.tick(resumed + 1s).empty());
  events = table.tick(resumed + 1600ms);
  REQUIRE(events.size() == 2);
  CHECK(events[0].what == kind::died);
  CHECK(events[1].what == kind::suspected);
}

TEST_CASE("a late tick never skips the suspicion") {
  membership table{bounds};
  REQUIRE(table.join(node("a", 1), start));
  table.tick(start);
  table.tick(start + 1499ms);
  auto events = table.tick(start + 2999ms);
  REQUIRE(events.size() == 1);
  CHECK(events[0].what == kind::suspected);
  events = table.tick(start + 4499ms);
  REQUIRE(events.size() == 1);
  CHECK(events[0].what == kind::died);
}

TEST_CASE("departed members are remembered up to a limit") {
  membership table{bounds};
  constexpr incarnation_id count = membership::max_departed + 10;
  for (incarnation_id i = 1; i <= count; ++i) {
    REQUIRE(table.join(node("a", i), start));
    REQUIRE(table.lost(i, "test", false, start));
  }
  CHECK(table.members().size() == membership::max_departed);
  CHECK_FALSE(table.find(10));
  CHECK(table.find(11));
}

TEST_CASE("in any history an id has one live holder and events alternate rightly") {
  std::mt19937 random{3};
  for (int run = 0; run < 50; ++run) {
    membership table{bounds};
    auto now = start;
    std::map<incarnation_id, kind> last;
    auto note = [&](const member_event& event) {
      auto& who = event.who;
      auto before = last.find(who.incarnation);
      switch (event.what) {
      case kind::joined:
        CHECK(before == last.end());
        break;
      case kind::recovered:
        REQUIRE(before != last.end());
        CHECK(before->second == kind::suspected);
        break;
      default:
        REQUIRE(before != last.end());
        CHECK(before->second != kind::died);
        CHECK(before->second != kind::left);
      }
      last[who.incarnation] = event.what;
    };
    for (int step = 0; step < 400; ++step) {
      now += std::chrono::milliseconds{random() % (random() % 50 == 0 ? 5000 : 400)};
      auto incarnation = random() % 12 + 1 + 4 * static_cast<unsigned>(step / 20);
      switch (random() % 6) {
      case 0:
        if (auto joined =
                table.join(node(std::string(1, "abc"[incarnation % 3]), incarnation), now))
          for (auto& event : *joined)
            note(event);
        break;
      case 1:
        if (auto event = table.lost(incarnation, "x", false, now))
          note(*event);
        break;
      case 2:
        if (auto event = table.leave(incarnation, now))
          note(*event);
        break;
      case 3:
        if (auto heard = table.heard_from(incarnation, now); heard && *heard)
          note(**heard);
        break;
      default:
        for (auto& event : table.tick(now))
          note(event);
      }
      std::set<std::string> ids;
      for (auto& who : table.members())
        if (who.live()) {
          CHECK(ids.insert(who.id).second);
          CHECK(table.holder_of(who.id)->incarnation == who.incarnation);
        }
      CHECK(ids.size() == table.live_count());
    }
  }
}

TEST_CASE("what ran on a member may run elsewhere when it can run there no more") {
  membership table{{1500ms, 3000ms, 2500ms, 250ms}};
  REQUIRE(table.join(node("a", 1), start));
  REQUIRE(table.heard_from(1, start + 1s));
  CHECK(table.find(1)->lease_end == start + 3500ms);

  SUBCASE("at once when it has said that it is gone") {
    CHECK(table.leave(1, start + 1200ms)->safe_from == start + 1200ms);
  }
  SUBCASE("when its process is gone, and the guardian has had time to kill") {
    CHECK(table.lost(1, "", true, start + 1200ms)->safe_from == start + 1450ms);
  }
  SUBCASE("after the lease when only the connection broke") {
    CHECK(table.lost(1, "", false, start + 1200ms)->safe_from == start + 3750ms);
  }
  SUBCASE("the end of the process comes late") {
    CHECK(table.lost(1, "", true, start + 3600ms)->safe_from == start + 3750ms);
    REQUIRE(table.join(node("b", 2), start));
    CHECK(table.lost(2, "", false, start + 1h)->safe_from == start + 1h);
  }
  SUBCASE("after the lease when it is silent") {
    member::time_point safe_from;
    for (auto now = start + 1s; now <= start + 5s; now += 100ms)
      for (auto& event : table.tick(now))
        if (event.what == kind::died) {
          CHECK(now == start + 4s);
          safe_from = event.safe_from;
        }
    CHECK(safe_from == start + 4s); // the lease and the margin ended before
  }
  SUBCASE("time in which the controller slept counts for the lease, not as silence") {
    table.tick(start + 1s);
    table.tick(start + 60s);
    CHECK(table.find(1)->live());
    CHECK(table.lost(1, "", false, start + 60s)->safe_from == start + 60s);
  }
}

TEST_CASE("incarnations are random and printed alike") {
  std::set<incarnation_id> drawn;
  for (int i = 0; i < 1000; ++i)
    drawn.insert(make_incarnation());
  CHECK(drawn.size() == 1000);
  CHECK_FALSE(drawn.contains(0));
  CHECK(format_incarnation(0xabc) == "0000000000000abc");
}
