#include "caf/basp_header.hpp"
#include "caf/message_reader.hpp"
#include "caf/message_writer.hpp"
#include "caf/outbox.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/binary_serializer.hpp>
#include <caf/make_message.hpp>
#include <caf/message.hpp>
#include <caf/scheduler/abstract_coordinator.hpp>
#include <cstring>
#include <doctest/doctest.h>
#include <map>
#include <string>
#include <vector>

namespace basp = troupe::transport::basp;
using troupe::transport::byte_view;
using troupe::transport::hole;
using troupe::transport::hole_place;
using troupe::transport::message_reader;
using troupe::transport::message_writer;
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
    REQUIRE_FALSE(source.failed());
    return value;
  }

  template <class T>
  bool refuses(const std::vector<char>& bytes) {
    T value{};
    message_reader source{context, std::as_bytes(std::span{bytes})};
    return static_cast<bool>(source(value)) || source.failed();
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
    CHECK(refuses<std::vector<std::string>>(bytes));
    using table = std::map<std::string, std::string>;
    CHECK(refuses<table>(bytes));
  }
  CHECK(refuses<std::string>(std::vector<char>(5, '\xFF')));   // more than 32 bits
  CHECK(refuses<std::string>(std::vector<char>(100, '\x80'))); // no end
  CHECK(refuses<std::string>({}));
}

TEST_CASE_FIXTURE(fixture, "a message that is cut short anywhere is refused") {
  auto bytes = written(caf::make_message(1, std::string{"two"}, std::vector<char>{3, 4}));
  for (size_t length = 0; length < bytes.size(); ++length) {
    CAPTURE(length);
    CHECK(refuses<caf::message>({bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(length)}));
  }
}

TEST_CASE_FIXTURE(fixture,
                  "long runs of bytes stay where they are, and are asked for where they belong") {
  auto message =
      caf::make_message(std::string(50, 'a'), 7, std::vector<char>(100, 'b'), std::string(99, 'c'),
                        std::vector<std::string>{std::string(200, 'd')});
  std::vector<char> bytes{'x'};
  message_writer sink{system, bytes, message, 100};
  REQUIRE_FALSE(caf::message::save(sink, message));
  // The string in the vector is no element of the message.
  REQUIRE(sink.holes().size() == 1);
  CHECK(sink.holes()[0].bytes.data() ==
        static_cast<const void*>(message.get_as<std::vector<char>>(2).data()));
  CHECK(bytes.size() < 500);
  std::vector<hole_place> holes{{sink.holes()[0].position, 100}};
  caf::message read;
  message_reader source{context, std::as_bytes(std::span{bytes}).subspan(1), holes};
  REQUIRE_FALSE(source(read));
  REQUIRE(source.places().size() == 1);
  std::memset(source.places()[0].data(), 'b', 100);
  CHECK(to_string(read) == to_string(message));
}

TEST_CASE("a layout is read back, and refused when it makes no sense") {
  std::vector<std::byte> memory(300);
  auto view = byte_view{memory};
  auto written = basp::encode_layout(std::vector<hole>{{0, view.first(100)}, {5, view}});
  auto payload = written;
  payload.insert(payload.end(), 5, 'x');
  auto read = basp::decode_layout(std::as_bytes(std::span{payload}));
  REQUIRE(read);
  REQUIRE(read->holes.size() == 2);
  CHECK(read->holes[1].position == 5);
  CHECK(read->holes[1].length == 300);
  CHECK(read->rest.size() == 5);
  for (size_t length = 0; length < payload.size(); ++length) // the last hole is outside then
    CHECK_FALSE(basp::decode_layout(std::as_bytes(std::span{payload}).first(length)));
  auto refused = [&](size_t offset, uint64_t value) {
    auto changed = payload;
    std::memcpy(changed.data() + offset, &value, sizeof value);
    return !basp::decode_layout(std::as_bytes(std::span{changed}));
  };
  CHECK(refused(4, 6));                // out of order
  CHECK(refused(12, 0));               // empty
  CHECK(refused(12, UINT64_MAX));      // more than there is memory
  CHECK(refused(28, UINT64_MAX - 99)); // the same, if sums were to overflow
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
  std::vector<outbox::segment> taken;
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
    got.insert(got.end(), each.bytes.begin(), each.bytes.end());
  CHECK(got == expected);
  std::vector<char> last{'x'};
  CHECK(box.put(last));
  CHECK(calls == 2);
  box.take_all(taken);
  CHECK(taken.size() == 22);
  CHECK(taken.back().bytes == last);
}

TEST_CASE("a closed outbox takes nothing") {
  auto calls = 0;
  outbox box{[&] { ++calls; }};
  std::vector<char> message{'x'};
  box.close();
  CHECK_FALSE(box.put(message));
  CHECK(calls == 0);
  std::vector<outbox::segment> taken;
  box.take_all(taken);
  CHECK(taken.empty());
}
