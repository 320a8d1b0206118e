// Segments of every length at which the channel or the device changes its ways.
#include "streams.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <fstream>
#include <string>

using namespace channel_test;

namespace {

constexpr size_t kib = 1024;
constexpr size_t mib = 1024 * kib;
constexpr size_t gib = 1024 * mib;

// Two nodes of this process, connected.
struct pair_of_nodes {
  pair_of_nodes() : outgoing(client.connect(server.address())) {
    REQUIRE(turn_until({&client, &server}, [&] { return client.ready == 1; }));
    REQUIRE(turn_until({&client, &server}, [&] { return server.accepted.size() == 1; }));
    incoming = std::move(server.accepted.front());
  }

  node client;
  node server;
  std::unique_ptr<channel> outgoing;
  std::unique_ptr<channel> incoming;
};

std::vector<size_t> interesting_lengths(const channel_options& options, size_t max_inline) {
  constexpr size_t frame_header = 8;
  constexpr size_t announced = 256; // bytes of a long segment that travel with its announcement
  std::vector<size_t> lengths{1, announced - 1, announced, announced + 1};
  for (size_t limit :
       {max_inline - std::min(max_inline, frame_header), options.slab_bytes - frame_header,
        2 * (options.slab_bytes - frame_header), options.rendezvous_threshold,
        options.direct_threshold + announced, 256 * kib + announced, options.chunk_bytes,
        options.chunk_bytes + announced, 8 * options.chunk_bytes + announced})
    for (size_t length : {limit - 1, limit, limit + 1})
      if (limit > 1)
        lengths.push_back(length);
  std::sort(lengths.begin(), lengths.end());
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  return lengths;
}

size_t free_memory() {
  std::ifstream file{"/proc/meminfo"};
  std::string name;
  for (size_t kilobytes = 0; file >> name >> kilobytes; file.ignore(100, '\n'))
    if (name == "MemAvailable:")
      return kilobytes * kib;
  return 0;
}

} // namespace

TEST_CASE("segments of every length near a limit arrive whole, both ways") {
  for (bool forth : {true, false}) {
    CAPTURE(forth);
    pair_of_nodes two;
    auto& out = forth ? *two.outgoing : *two.incoming;
    auto& in = forth ? *two.incoming : *two.outgoing;
    checking_reader reader{1};
    reader.limit = 0;
    in.read_with(reader);
    uint64_t sent = 0;
    for (auto length :
         interesting_lengths(two.client.options, two.client.loop().adapter().limits().max_inline)) {
      CAPTURE(length);
      auto bytes = segment(sent, length);
      sent += length;
      out.send(bytes);
      reader.resize(length);
      reader.limit = sent;
      in.resume();
      REQUIRE(turn_until({&two.client, &two.server}, [&] { return reader.bytes == sent; }));
      REQUIRE(reader.correct);
    }
    // Nothing is held back for the peer once all is read.
    CHECK(turn_until({&two.client, &two.server}, [&] { return out.backlog_bytes() == 0; }));
  }
}

TEST_CASE("short and long segments keep their order, whatever pieces they are read in") {
  for (size_t piece : {size_t{1000}, size_t{70'000}, 3 * mib}) {
    CAPTURE(piece);
    pair_of_nodes two;
    checking_reader reader{piece};
    two.incoming->read_with(reader);
    uint64_t sent = 0;
    size_t round = 0;
    while (sent < 24 * mib) {
      auto bytes = segment(sent, round % 7 == 6 ? mib + round : 1 + round * 997 % 50'000);
      sent += bytes.size();
      ++round;
      two.outgoing->send(bytes);
    }
    auto whole = sent / piece * piece; // the last bytes do not fill a piece
    CHECK(turn_until({&two.client, &two.server}, [&] { return reader.bytes == whole; }));
    CHECK(reader.correct);
    CHECK_FALSE(reader.ended);
  }
}

TEST_CASE("a segment longer than 4 GiB arrives whole" * doctest::test_suite("large")) {
  constexpr size_t length = 4 * gib + 1;
  if (free_memory() < 3 * length) {
    MESSAGE("not tried: " << free_memory() / mib << " MiB of memory are free, it takes "
                          << 3 * length / mib);
    return;
  }
  pair_of_nodes two;
  auto bytes = segment(0, length);
  SUBCASE("into one buffer") {
    checking_reader reader{length};
    two.incoming->read_with(reader);
    two.outgoing->send(bytes);
    CHECK(turn_until({&two.client, &two.server}, [&] { return reader.bytes == length; }));
    CHECK(reader.correct);
  }
  SUBCASE("in pieces, one of which crosses 4 GiB") {
    constexpr size_t piece = 3 * mib + 1;
    checking_reader reader{piece};
    two.incoming->read_with(reader);
    two.outgoing->send(bytes);
    CHECK(turn_until({&two.client, &two.server},
                     [&] { return reader.bytes == length / piece * piece; }));
    CHECK(reader.correct);
  }
}
