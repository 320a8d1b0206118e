#include "streams.hpp"

#include "support/child_process.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <doctest/doctest.h>
#include <utility>

namespace channel_test {

namespace {

using clock = std::chrono::steady_clock;

// The stream repeats this, a length that no limit is a multiple of.
const std::vector<char>& pattern() {
  static const auto made = [] {
    std::vector<char> bytes((1U << 20) + 7);
    uint32_t state = 12345;
    for (auto& byte : bytes) {
      state = state * 1664525U + 1013904223U;
      byte = static_cast<char>(state >> 24);
    }
    return bytes;
  }();
  return made;
}

/// Calls `use(pattern, offset, length)` for each stretch of the pattern that `length` bytes from
/// position `begin` on are made of.
template <class Use>
void each_stretch(uint64_t begin, size_t length, Use use) {
  const auto& bytes = pattern();
  for (size_t done = 0; done < length;) {
    auto start = static_cast<size_t>((begin + done) % bytes.size());
    auto count = std::min(bytes.size() - start, length - done);
    use(bytes.data() + start, done, count);
    done += count;
  }
}

} // namespace

subject& under_test() {
  static subject chosen;
  return chosen;
}

std::vector<char> segment(uint64_t begin, size_t length) {
  std::vector<char> bytes(length);
  each_stretch(begin, length, [&](const char* from, size_t offset, size_t count) {
    std::memcpy(bytes.data() + offset, from, count);
  });
  return bytes;
}

bool right(byte_view bytes, uint64_t begin) {
  bool all = true;
  each_stretch(begin, bytes.size(), [&](const char* from, size_t offset, size_t count) {
    all = all && std::memcmp(bytes.data() + offset, from, count) == 0;
  });
  return all;
}

// -- checking_reader
// ------------------------------------------------------------------------------

byte_span checking_reader::next_buffer() {
  return bytes < limit ? byte_span{buffer_} : byte_span{};
}

void checking_reader::on_filled() {
  correct = correct && right(buffer_, bytes);
  bytes += buffer_.size();
  if (on_piece)
    on_piece();
}

void checking_reader::on_end(const error& why) {
  ended = true;
  reason = why;
}

// -- node
// -----------------------------------------------------------------------------------------

node::node() {
  auto key = load_key_file(std::getenv("TROUPE_KEY_FILE"));
  REQUIRE_MESSAGE(key, key.error().text());
  auto opened = engine::open(under_test().device, *key);
  REQUIRE_MESSAGE(opened, opened.error().text());
  loop_ = std::move(*opened);
  auto made = loop_->listen({under_test().address, 0},
                            [this](auto request) { accept(std::move(request)); });
  REQUIRE_MESSAGE(made, made.error().text());
  listener_ = std::move(*made);
}

endpoint node::address() const {
  return {under_test().address, listener_->local().port};
}

std::unique_ptr<channel> node::connect(const endpoint& where, std::chrono::milliseconds timeout) {
  auto made = channel::connect(*loop_, where, options, timeout, [this](const error& how) {
    if (how)
      failure = how;
    else
      ++ready;
  });
  REQUIRE_MESSAGE(made, made.error().text());
  return std::move(*made);
}

void node::accept(std::unique_ptr<connection_request> request) {
  auto whom = loop_->admission().admit(*request);
  if (!whom) // it has only asked so far, see hello.hpp
    return;
  auto made = channel::accept(*loop_, *request, *whom, options, [](const error&) {});
  if (made) // else the peer has given up meanwhile; whoever waits for it notices
    accepted.push_back(std::move(*made));
}

bool turn_until(std::initializer_list<node*> nodes, const std::function<bool()>& reached) {
  auto deadline = clock::now() + support::patience;
  auto last = std::prev(nodes.end());
  while (!reached()) {
    bool busy = false;
    for (auto each : nodes)
      busy = each->loop().turn() || busy;
    // Nodes of one process take turns at sleeping, shortly; a single one sleeps as a loop does.
    if (!busy)
      (*last)->loop().turn_or_sleep(std::chrono::milliseconds{nodes.size() == 1 ? 100 : 1});
    if (clock::now() > deadline)
      return reached();
  }
  return true;
}

void turn_for(std::initializer_list<node*> nodes, std::chrono::milliseconds time) {
  auto end = clock::now() + time;
  turn_until(nodes, [&] { return clock::now() > end; });
}

} // namespace channel_test
