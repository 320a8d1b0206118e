#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <functional>
#include <random>
#include <troupe/actors/completion_slot.hpp>
#include <troupe/actors/task_slot.hpp>
#include <troupe/framework/crc32c.hpp>

using namespace troupe;
using namespace troupe::cluster;
using namespace std::chrono_literals;
using transport::bytes_of;
using transport::remote_region;

namespace {

using slot_bytes = std::array<std::byte, task_slot_bytes>;
static_assert(task_slot_bytes == completion_slot_bytes);

task_order some_order() {
  task_order order;
  order.job = 0x1122334455667788;
  order.task = 4'000'000'000;
  order.attempt = 3;
  order.cpus = 2;
  order.memory = 8ull << 30;
  order.argv = {"/bin/sh", "-c", "echo \"$X\"\n", ""};
  order.env = {"X=\xff\x01", "EMPTY="};
  order.cwd = "/tmp";
  return order;
}

task_completion some_end() {
  task_completion end;
  end.job = 7;
  end.task = 9;
  end.attempt = 1;
  end.exit_code = 3;
  end.started = 5ms;
  end.ended = 12ms;
  inline_output output;
  for (int i = 0; i < 300; ++i)
    output.standard_output.push_back(static_cast<std::byte>(i));
  output.standard_error.push_back(std::byte{0});
  end.output = output;
  return end;
}

/// An inline slot of `order`.
size_t encode(const task_order& order, slot_bytes& slot) {
  auto used = encode_task_slot(order, encode_task_body(order), {}, slot);
  REQUIRE(used);
  return *used;
}

/// Checks that `accepts` takes the first `used` bytes of `slot` as they are, and nothing that was
/// cut off or damaged anywhere.
void check_damage(const slot_bytes& slot, size_t used,
                  const std::function<bool(transport::byte_view)>& accepts) {
  REQUIRE(accepts(slot));
  CHECK(accepts(transport::byte_view{slot}.first(used)));
  for (size_t length = 0; length < used; ++length)
    CHECK_FALSE(accepts(transport::byte_view{slot}.first(length)));
  for (size_t bit = 0; bit < used * 8; ++bit) {
    auto damaged = slot;
    damaged[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    CHECK_FALSE(accepts(damaged));
  }
  // What lies behind the used part is of no importance.
  if (used < slot.size()) {
    auto other = slot;
    other[used] ^= std::byte{255};
    CHECK(accepts(other));
  }
}

/// Bytes at random; every other time behind the beginning of a sound slot, so that more than the
/// magic is looked at.
void check_random(const slot_bytes& sound,
                  const std::function<bool(transport::byte_view)>& accepts) {
  std::mt19937 random{5};
  for (int i = 0; i < 3000; ++i) {
    auto slot = sound;
    auto from = random() % 2 * (random() % 64);
    for (auto at = from; at < slot.size(); ++at)
      slot[at] = static_cast<std::byte>(random());
    CHECK_FALSE(accepts(slot));
  }
}

/// Gives `slot` the length and the checksum that belong to its first `used` bytes, as a malicious
/// peer would.
void forge(slot_bytes& slot, uint32_t used) {
  auto put = [&](size_t at, uint32_t value) {
    for (size_t i = 0; i < 4; ++i)
      slot[at + i] = static_cast<std::byte>(value >> (8 * i));
  };
  put(8, used);
  put(12, 0);
  put(12, crc32c(transport::byte_view{slot}.first(used)));
}

bool accepts_task(transport::byte_view slot) {
  return decode_task_slot(slot).has_value();
}

bool accepts_completion(transport::byte_view slot) {
  return decode_completion_slot(slot).has_value();
}

} // namespace

TEST_CASE("the checksum is CRC-32C") {
  CHECK(crc32c(bytes_of("123456789")) == 0xe3069283);
  CHECK(crc32c({}) == 0);
  std::array<std::byte, 32> zeros{};
  CHECK(crc32c(zeros) == 0x8a9136aa);
  auto text = bytes_of("The quick brown fox jumps over the lazy dog");
  for (size_t cut = 0; cut <= text.size(); ++cut)
    CHECK(crc32c(text.subspan(cut), crc32c(text.first(cut))) == crc32c(text));
}

TEST_CASE("an order is read as it was written") {
  slot_bytes slot{};
  auto order = some_order();
  auto used = encode(order, slot);
  CHECK(used < 200);
  auto read = decode_task_slot(slot);
  REQUIRE_MESSAGE(read, read.error().text());
  CHECK(read->order == order);
  CHECK_FALSE(read->body);

  order.env.clear();
  order.cwd.clear();
  encode(order, slot);
  CHECK(decode_task_slot(slot)->order == order);
}

TEST_CASE("a command that just fits travels in the slot, a longer one in a block") {
  slot_bytes slot{};
  auto order = some_order();
  order.argv = {"p", ""};
  auto room = max_inline_task_body - encode_task_body(order).size();
  order.argv[1] = std::string(room, 'x');
  CHECK(encode(order, slot) == task_slot_bytes);
  CHECK(decode_task_slot(slot)->order == order);

  order.argv[1] += 'x';
  auto body = encode_task_body(order);
  CHECK(encode_task_slot(order, body, {}, slot).error().code() == errc::invalid_argument);
  remote_region where{0x7000, body.size(), 42};
  REQUIRE(encode_task_slot(order, body, where, slot));
  auto read = decode_task_slot(slot);
  REQUIRE(read);
  REQUIRE(read->body);
  CHECK(read->body->where == where);
  CHECK(read->order.argv.empty());
  CHECK(read->order.job == order.job);

  SUBCASE("the block completes the order") {
    REQUIRE(decode_task_body(body, *read->body, read->order));
    CHECK(read->order == order);
  }
  SUBCASE("another block does not") {
    auto before = read->order;
    auto damaged = body;
    damaged.back() ^= std::byte{1};
    CHECK_FALSE(decode_task_body(damaged, *read->body, read->order));
    body.pop_back();
    CHECK_FALSE(decode_task_body(body, *read->body, read->order));
    CHECK_FALSE(decode_task_body({}, *read->body, read->order));
    CHECK(read->order == before);
  }
}

TEST_CASE("the largest command that may be submitted can be carried") {
  auto order = some_order();
  order.argv.assign(max_command_bytes / 2 - 64, "x");
  order.argv[0] = "p";
  REQUIRE(check_command(order.argv, order.env, order.cwd));
  auto body = encode_task_body(order);
  CHECK(body.size() <= max_task_body);
  slot_bytes slot{};
  REQUIRE(encode_task_slot(order, body, {1, body.size(), 1}, slot));
  auto read = decode_task_slot(slot);
  REQUIRE(read);
  REQUIRE(decode_task_body(body, *read->body, read->order));
  CHECK(read->order == order);
}

TEST_CASE("a task slot that is damaged, cut off or random is refused") {
  slot_bytes slot{};
  auto used = encode(some_order(), slot);
  check_damage(slot, used, accepts_task);
  check_random(slot, accepts_task);
  auto body = std::vector<std::byte>(5000, std::byte{1});
  used = *encode_task_slot(some_order(), body, {1, 5000, 1}, slot);
  check_damage(slot, used, accepts_task);
}

TEST_CASE("an order that is whole but makes no sense is refused") {
  slot_bytes slot{};
  auto refused = [&](auto change) {
    auto order = some_order();
    change(order);
    encode(order, slot);
    auto read = decode_task_slot(slot);
    REQUIRE_FALSE(read);
    CHECK(read.error().code() == errc::protocol_violation);
  };
  refused([](task_order& o) { o.job = 0; });
  refused([](task_order& o) { o.attempt = 0; });
  refused([](task_order& o) { o.cpus = 0; });
  refused([](task_order& o) { o.argv.clear(); });
  refused([](task_order& o) { o.argv[0].clear(); });
  refused([](task_order& o) { o.argv[1] = std::string{"a\0b", 3}; });
  refused([](task_order& o) { o.env[0] = "no equals sign"; });
  refused([](task_order& o) { o.cwd = "relative"; });
}

TEST_CASE("a forged slot with a right checksum cannot do harm") {
  std::mt19937 random{6};
  slot_bytes sound{};
  auto used = encode(some_order(), sound);
  size_t accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    auto slot = sound;
    for (auto n = random() % 4 + 1; n > 0; --n)
      slot[16 + random() % (used - 16)] = static_cast<std::byte>(random());
    if (random() % 2 == 0)
      slot[6] = static_cast<std::byte>(random() % 3);
    auto length = random() % 2 == 0 ? used : 16 + random() % (task_slot_bytes - 16);
    forge(slot, static_cast<uint32_t>(length));
    auto read = decode_task_slot(slot);
    if (!read)
      continue;
    ++accepted;
    if (read->body)
      CHECK(read->body->where.length <= max_task_body);
    else
      CHECK(check_command(read->order.argv, read->order.env, read->order.cwd));
  }
  CHECK(accepted > 0);
  // Counts and lengths that claim far more than there is.
  for (size_t at = 48; at < 56; ++at) {
    auto slot = sound;
    std::fill_n(slot.begin() + static_cast<long>(at), 4, std::byte{255});
    forge(slot, static_cast<uint32_t>(used));
    CHECK_FALSE(decode_task_slot(slot));
  }
}

TEST_CASE("another version is told apart from damage") {
  slot_bytes slot{};
  encode(some_order(), slot);
  slot[4] = std::byte{2};
  auto read = decode_task_slot(slot);
  REQUIRE_FALSE(read);
  CHECK(read.error().code() == errc::version_mismatch);
  CHECK(decode_completion_slot(slot).error().code() == errc::protocol_violation);
}

TEST_CASE("an end is read as it was written") {
  slot_bytes slot{};
  auto end = some_end();
  SUBCASE("with its output") {}
  SUBCASE("without output") {
    end.output = inline_output{};
  }
  SUBCASE("killed") {
    end.exit_code = -1;
    end.signal = 9;
  }
  SUBCASE("never run") {
    end.exit_code = -1;
    end.failure = "cannot start /bin/nonsense: No such file or directory";
  }
  SUBCASE("with as much output as fits") {
    inline_output output;
    output.standard_output.resize(max_inline_output - 4, std::byte{7});
    output.standard_error.resize(4, std::byte{8});
    end.failure = std::string(max_failure_bytes, 'f');
    end.output = output;
  }
  SUBCASE("with its output elsewhere") {
    end.output = remote_output{{UINT64_MAX - (5ull << 32), 5ull << 32, 77}, {}};
  }
  REQUIRE(encode_completion_slot(end, slot));
  auto read = decode_completion_slot(slot);
  REQUIRE_MESSAGE(read, read.error().text());
  CHECK(*read == end);
  auto outcome = read->outcome();
  CHECK(outcome.exit_code == end.exit_code);
  CHECK(outcome.signal == end.signal);
  CHECK(outcome.failure == end.failure);
  CHECK(outcome.elapsed == 7ms);
  CHECK(outcome.stdout_bytes == end.stdout_bytes());
  CHECK(outcome.stderr_bytes == end.stderr_bytes());
}

TEST_CASE("what cannot be written is refused or cut") {
  slot_bytes slot{};
  auto end = some_end();
  end.failure = std::string(max_failure_bytes + 1, 'f');
  REQUIRE(encode_completion_slot(end, slot));
  CHECK(decode_completion_slot(slot)->failure.size() == max_failure_bytes);
  end.output = inline_output{std::vector<std::byte>(max_inline_output), {std::byte{1}}};
  CHECK(encode_completion_slot(end, slot).error().code() == errc::invalid_argument);
  auto small = transport::byte_span{slot}.first(4095);
  CHECK(encode_completion_slot(some_end(), small).error().code() == errc::invalid_argument);
  CHECK(encode_task_slot(some_order(), {}, {}, small).error().code() == errc::invalid_argument);
}

TEST_CASE("a completion slot that is damaged, cut off or random is refused") {
  slot_bytes slot{};
  auto used = encode_completion_slot(some_end(), slot);
  check_damage(slot, *used, accepts_completion);
  check_random(slot, accepts_completion);
  auto end = some_end();
  end.output = remote_output{{4096, 10'000, 1}, {1 << 20, 5, 2}};
  used = encode_completion_slot(end, slot);
  check_damage(slot, *used, accepts_completion);
}

TEST_CASE("an end whose values are impossible is refused") {
  slot_bytes slot{};
  auto refused = [&](auto change) {
    auto end = some_end();
    change(end);
    REQUIRE(encode_completion_slot(end, slot));
    auto read = decode_completion_slot(slot);
    REQUIRE_FALSE(read);
    CHECK(read.error().code() == errc::protocol_violation);
  };
  refused([](task_completion& e) { e.job = 0; });
  refused([](task_completion& e) { e.attempt = 0; });
  refused([](task_completion& e) { e.exit_code = 256; });
  refused([](task_completion& e) { e.exit_code = -2; });
  refused([](task_completion& e) { e.signal = -1; });
  refused([](task_completion& e) { e.signal = 128; });
  refused([](task_completion& e) { e.ended = e.started - 1ns; });
  refused([](task_completion& e) { e.started = -1ns; });
  refused([](task_completion& e) { e.output = remote_output{{UINT64_MAX, 2, 1}, {}}; });
}

TEST_CASE("a forged completion with a right checksum cannot do harm") {
  std::mt19937 random{7};
  slot_bytes sound{};
  auto used = *encode_completion_slot(some_end(), sound);
  size_t accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    auto slot = sound;
    for (auto n = random() % 4 + 1; n > 0; --n)
      slot[16 + random() % (used - 16)] = static_cast<std::byte>(random());
    if (random() % 2 == 0)
      slot[6] = static_cast<std::byte>(random() % 3);
    auto length = random() % 2 == 0 ? used : 16 + random() % (completion_slot_bytes - 16);
    forge(slot, static_cast<uint32_t>(length));
    if (auto read = decode_completion_slot(slot)) {
      ++accepted;
      CHECK(read->failure.size() <= max_failure_bytes);
      CHECK(read->outcome().elapsed >= 0ns);
    }
  }
  CHECK(accepted > 0);
}
