#include "caf/basp_header.hpp"
#include "caf/message_reader.hpp"
#include "caf/outbox.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/binary_serializer.hpp>
#include <caf/make_message.hpp>
#include <caf/message.hpp>
#include <caf/scheduler/abstract_coordinator.hpp>
#include <doctest/doctest.h>
#include <map>
#include <string>
#include <vector>

namespace basp = troupe::transport::basp;
using troupe::transport::byte_view;
using troupe::transport::message_reader;
using troupe::transport::outbox;

namespace {

struct unit final : caf::execution_unit {
  explicit unit(caf::actor_system& system) : execution_unit(&system) {}
  void exec_later(caf::resumable*) override { FAIL("nothing here makes actors runnable"); }
};

struct fixture {
  template <class... Ts>
  std::vector<char> written(const Ts&... values) {
    std::vector<char> bytes;
    caf::binary_serializer sink{system, bytes};
    REQUIRE_FALSE(sink(const_cast<Ts&>(values)...));
    return bytes;
  }

  template <class T>
  T read(const std::vector<char>& bytes) {
    T value{};
    message_reader source{context, std::as_bytes(std::span{bytes})};
    REQUIRE_FALSE(source(value));
    return value;
  }

  template <class T>
  bool refuses(const std::vector<char>& bytes) {
    T value{};
    message_reader source{context, std::as_bytes(std::span{bytes})};
    return static_cast<bool>(source(value));
  }

  caf::actor_system_config config;
  caf::actor_system system{config};
  unit context{system};
};

std::vector<char> length_only(uint32_t length) {
  std::vector<char> bytes;
  for (; length > 0x7F; length >>= 7)
    bytes.push_back(static_cast<char>((length & 0x7F) | 0x80));
  bytes.push_back(static_cast<char>(length));
  return bytes;
}

} // namespace

TEST_CASE_FIXTURE(fixture, "what CAF writes is read back") {
  using table = std::map<std::string, std::vector<double>>;
  table values{{"", {}}, {"a", {1.5, -0.0, 1e300}}, {std::string(300, 'x'), {}}};
  CHECK(read<table>(written(values)) == values);
  CHECK(read<int8_t>(written(int8_t{-7})) == -7);
  CHECK(read<int16_t>(written(int16_t{-300})) == -300);
  CHECK(read<uint64_t>(written(uint64_t{0xFEDCBA9876543210})) == 0xFEDCBA9876543210);
  CHECK(read<float>(written(0.25F)) == 0.25F);
  CHECK(read<long double>(written(0.5L)) == 0.5L);
  CHECK(read<std::u16string>(written(std::u16string{u"\u00e4\u20ac"})) == u"\u00e4\u20ac");
  CHECK(read<std::u32string>(written(std::u32string{U"\U0001F600"})) == U"\U0001F600");
  auto message = caf::make_message(1, std::string{"two"}, std::vector<char>(1000, '3'));
  CHECK(to_string(read<caf::message>(written(message))) == to_string(message));
}

TEST_CASE_FIXTURE(fixture, "no length is believed that the rest of the message cannot hold") {
  for (uint32_t length : {70'000U, 0x7FFFFFFFU, 0xFFFFFFFFU}) {
    CAPTURE(length);
    auto bytes = length_only(length);
    CHECK(refuses<std::string>(bytes));
    CHECK(refuses<std::u16string>(bytes));
    CHECK(refuses<std::u32string>(bytes));
    CHECK(refuses<std::vector<char>>(bytes));
    CHECK(refuses<std::vector<uint64_t>>(bytes));
    using table = std::map<uint32_t, uint32_t>;
    CHECK(refuses<table>(bytes));
  }
  CHECK(refuses<std::string>(std::vector<char>(5, '\xFF')));   // more than 32 bits
  CHECK(refuses<std::string>(std::vector<char>(100, '\x80'))); // no end
  CHECK(refuses<std::string>({}));
}

TEST_CASE_FIXTURE(fixture, "a message that is cut short anywhere is refused") {
  auto bytes = written(caf::make_message(1, std::string{"two"}, std::vector<uint16_t>{3, 4}));
  for (size_t length = 0; length < bytes.size(); ++length) {
    CAPTURE(length);
    CHECK(refuses<caf::message>({bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(length)}));
  }
}

TEST_CASE_FIXTURE(fixture, "headers are those of CAF") {
  basp::header header{
      basp::message_type::direct_message, 0x81, 0x12345678, 0x1122334455667788, 99, 1ULL << 40};
  auto theirs = written(header);
  REQUIRE(theirs.size() == basp::header_size);
  std::vector<char> ours(basp::header_size, '\x55');
  basp::encode(std::as_writable_bytes(std::span{ours}), header);
  CHECK(ours == theirs);
  CHECK(basp::decode(std::as_bytes(std::span{theirs})) == header);
}

TEST_CASE("an outbox keeps the order of short and long messages, and says when it has something") {
  auto calls = 0;
  outbox box{[&] { ++calls; }};
  std::vector<char> expected;
  std::vector<outbox::bytes> taken;
  for (char i = 0; i < 100; ++i) {
    std::vector<char> message(i % 10 == 3 ? 20'000 : 20, i);
    expected.insert(expected.end(), message.begin(), message.end());
    REQUIRE(box.put(message));
  }
  CHECK(calls == 1);
  box.take_all(taken);
  CHECK(taken.size() == 21); // ten long ones, and what is between them
  std::vector<char> got;
  for (auto& each : taken)
    got.insert(got.end(), each.begin(), each.end());
  CHECK(got == expected);
  std::vector<char> last{'x'};
  CHECK(box.put(last));
  CHECK(calls == 2);
  box.take_all(taken);
  CHECK(taken.size() == 22);
  CHECK(taken.back() == last);
}

TEST_CASE("a closed outbox takes nothing") {
  auto calls = 0;
  outbox box{[&] { ++calls; }};
  std::vector<char> message{'x'};
  box.close();
  CHECK_FALSE(box.put(message));
  CHECK(calls == 0);
  std::vector<outbox::bytes> taken;
  box.take_all(taken);
  CHECK(taken.empty());
}
