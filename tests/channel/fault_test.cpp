// Peers that are slow, stand still, or die while a segment is on its way.
#include "peer.hpp"
#include "streams.hpp"
#include "support/child_process.hpp"

#include <doctest/doctest.h>
#include <malloc.h>
#include <string>

using namespace channel_test;

namespace {

// Memory in large pieces; nothing under a sanitizer, which has an allocator of its own.
size_t large_memory() {
  return mallinfo2().hblkhd;
}

} // namespace

TEST_CASE("a slow receiver gets everything") {
  node here;
  peer other{here, "receive-slowly", {16 * kib}};
  checking_reader nothing{1};
  other.stream->read_with(nothing);
  constexpr uint64_t total = 8 * mib;
  send_mixed(*other.stream, total);
  CHECK(other.stream->backlog_bytes() <= total);
  CHECK(turn_until({&here}, [&] { return other.stream->backlog_bytes() == 0; }));
  CHECK_FALSE(nothing.ended);
  check_has_read(here, other, total);
}

TEST_CASE("a receiver that stands still is waited for, not declared dead, and gets everything") {
  node here;
  peer other{here, "receive", {64 * kib}};
  checking_reader nothing{1};
  other.stream->read_with(nothing);
  constexpr uint64_t total = 16 * mib;
  auto before = large_memory();
  other.process().stop();
  send_mixed(*other.stream, total);
  // An adapter repeats a send that meets no receive seven times at most, or for ever: several
  // seconds are enough to tell.
  turn_for({&here}, std::chrono::seconds{5});
  CHECK_FALSE(nothing.ended);
  // What waits is what was handed over, less what has left: there are no copies.
  auto waiting = other.stream->backlog_bytes();
  CHECK(waiting > 0);
  CHECK(waiting <= total);
  CHECK(large_memory() <= before + total + mib);
  other.process().go_on();
  check_has_read(here, other, total);
}

TEST_CASE("a sender that stands still in the middle of a segment is waited for") {
  node here;
  constexpr uint64_t total = 32 * mib;
  peer other{here, "send", {total, total}};
  checking_reader reader{64 * kib};
  reader.limit = mib;
  other.stream->read_with(reader);
  REQUIRE(turn_until({&here}, [&] { return reader.bytes == mib; }));
  other.process().stop();
  reader.limit = UINT64_MAX;
  other.stream->resume();
  turn_for({&here}, std::chrono::seconds{3});
  CHECK_FALSE(reader.ended);
  other.process().go_on();
  CHECK(turn_until({&here}, [&] { return reader.bytes == total; }));
  CHECK(reader.correct);
}

TEST_CASE("a receiver killed in the middle of a segment frees it, and others go on") {
  node here;
  peer third{here, "receive", {64 * kib}};
  peer other{here, "receive", {64 * kib, mib}};
  checking_reader nothing{1};
  other.stream->read_with(nothing);
  auto before = large_memory();
  auto bytes = segment(0, 64 * mib);
  other.stream->send(bytes);
  auto more = segment(64 * mib, 64 * mib);
  other.stream->send(more); // waits
  REQUIRE(turn_until({&here}, [&] {
    return other.process().out().find("paused") != std::string::npos; // it has read a part
  }));
  CHECK(other.process().line() == "paused");
  CHECK_FALSE(nothing.ended);
  other.process().kill();
  CHECK(turn_until({&here}, [&] { return nothing.ended; }));
  CHECK(nothing.reason.code() == errc::disconnected);
  here.loop().turn();
  CHECK(large_memory() <= before + 8 * mib); // a channel may keep some to use it again
  other.stream.reset();
  check_goes_on(here, third);
}

TEST_CASE("a sender killed in the middle of a segment ends the stream, and others go on") {
  node here;
  peer third{here, "receive", {64 * kib}};
  for (bool reading : {false, true}) {
    CAPTURE(reading);
    peer other{here, "send", {64 * mib, 64 * mib}};
    checking_reader reader{64 * kib};
    // Killed while nothing is read, or while a read is in flight.
    reader.limit = mib;
    other.stream->read_with(reader);
    REQUIRE(turn_until({&here}, [&] { return reader.bytes == mib; }));
    if (reading) {
      reader.limit = UINT64_MAX;
      other.stream->resume();
    }
    other.process().kill();
    CHECK(turn_until({&here}, [&] {
      other.stream->resume();
      return reader.ended;
    }));
    CHECK(reader.correct);
    CHECK(reader.bytes < 64 * mib);
    CHECK(reader.reason);
    CHECK_FALSE(reader.reason.text().empty());
  }
  check_goes_on(here, third);
}

TEST_CASE("two nodes that connect to each other at the same moment both can send") {
  node left;
  node right;
  auto there = left.connect(right.address());
  auto back = right.connect(left.address());
  REQUIRE(turn_until({&left, &right}, [&] {
    return left.ready == 1 && right.ready == 1 && left.accepted.size() == 1 &&
           right.accepted.size() == 1;
  }));
  checking_reader readers[4] = {checking_reader{mib}, checking_reader{mib}, checking_reader{mib},
                                checking_reader{mib}};
  channel* ends[4] = {there.get(), right.accepted[0].get(), back.get(), left.accepted[0].get()};
  for (int i = 0; i < 4; ++i) {
    ends[i]->read_with(readers[i]);
    send_mixed(*ends[i], 3 * mib);
  }
  CHECK(turn_until({&left, &right}, [&] {
    return std::all_of(std::begin(readers), std::end(readers),
                       [](const auto& each) { return each.bytes == 3 * mib && each.correct; });
  }));
}

TEST_CASE("closing sends what waits, and a new connection follows at once") {
  node here;
  node there;
  for (int round = 0; round < 5; ++round) {
    CAPTURE(round);
    auto outgoing = here.connect(there.address());
    REQUIRE(turn_until({&here, &there}, [&] {
      return here.ready == static_cast<unsigned>(round) + 1 && !there.accepted.empty();
    }));
    auto incoming = std::move(there.accepted.back());
    there.accepted.clear();
    checking_reader reader{256 * kib};
    incoming->read_with(reader);
    send_mixed(*outgoing, 3 * mib);
    bool closed = false;
    outgoing->close([&] { closed = true; });
    CHECK(turn_until({&here, &there}, [&] { return closed; }));
    outgoing.reset();
    // The next one begins while the other side has yet to hear of the end.
    auto next = here.connect(there.address());
    CHECK(turn_until({&here, &there}, [&] { return reader.ended; }));
    CHECK(reader.bytes == 3 * mib);
    CHECK(reader.correct);
    CHECK(reader.reason.code() == errc::disconnected);
    next.reset();
    there.accepted.clear();
    here.ready = static_cast<unsigned>(round) + 1;
  }
}
