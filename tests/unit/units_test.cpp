#include <cstdint>
#include <doctest/doctest.h>
#include <random>
#include <troupe/framework/units.hpp>

using namespace troupe;
using namespace std::chrono_literals;

TEST_CASE("a size is read with its unit") {
  constexpr uint64_t gib = uint64_t{1} << 30;
  CHECK(*parse_size("0") == 0);
  CHECK(*parse_size("4096") == 4096);
  CHECK(*parse_size("17B") == 17);
  CHECK(*parse_size("8GiB") == 8 * gib);
  CHECK(*parse_size("8 gib") == 8 * gib);
  CHECK(*parse_size("8G") == 8 * gib);
  CHECK(*parse_size("8GB") == 8'000'000'000);
  CHECK(*parse_size("1.5KiB") == 1536);
  CHECK(*parse_size("0.25TiB") == 256 * gib);
  CHECK(*parse_size("18446744073709551615") == UINT64_MAX);
}

TEST_CASE("what is not a size is refused with its text") {
  for (auto text : {"", " ", "GiB", "-1", "1.", ".5G", "1.1234567G", "8 GiBs", "8GiB ", "1e9",
                    "18446744073709551616", "99999999999TiB", "8GiB8", "0x10"}) {
    CAPTURE(text);
    auto size = parse_size(text);
    REQUIRE_FALSE(size);
    CHECK(size.error().code() == errc::invalid_argument);
    CHECK(size.error().text().starts_with('\'' + std::string{text} + '\''));
  }
}

TEST_CASE("a size is printed in its largest unit") {
  CHECK(format_size(0) == "0B");
  CHECK(format_size(1023) == "1023B");
  CHECK(format_size(1024) == "1KiB");
  CHECK(format_size(1536) == "1.5KiB");
  CHECK(format_size(8ull << 30) == "8GiB");
  CHECK(format_size((8ull << 30) - 1) == "7.9GiB");
  CHECK(format_size(UINT64_MAX) == "16777215.9TiB");
}

TEST_CASE("a duration is read with its units") {
  CHECK(*parse_duration("0") == 0ns);
  CHECK(*parse_duration("500ms") == 500ms);
  CHECK(*parse_duration("1.5s") == 1500ms);
  CHECK(*parse_duration("1h30m") == 90min);
  CHECK(*parse_duration("1h 30 min 2s") == 5402s);
  CHECK(*parse_duration("7us3NS") == 7003ns);
  for (auto text :
       {"", "5", "s", "-1s", "1.s", "5 parsecs", "1h30", "400000000h", "1s,", "1..5s"}) {
    CAPTURE(text);
    CHECK(parse_duration(text).error().code() == errc::invalid_argument);
  }
}

TEST_CASE("a duration is printed for people") {
  CHECK(format_duration(0s) == "0s");
  CHECK(format_duration(17ns) == "17ns");
  CHECK(format_duration(1500ns) == "1.5us");
  CHECK(format_duration(500ms) == "500ms");
  CHECK(format_duration(1250ms) == "1.25s");
  CHECK(format_duration(59999ms) == "59.999s");
  CHECK(format_duration(125s) == "2m5s");
  CHECK(format_duration(3h + 3min + 59s) == "3h3m");
  CHECK(format_duration(-1500ms) == "-1.5s");
  CHECK(format_duration(std::chrono::nanoseconds::min()).starts_with("-2562047h"));
}

TEST_CASE("what was printed is read back") {
  std::mt19937_64 random{1};
  for (int i = 0; i < 10'000; ++i) {
    auto bits = random() >> (random() % 63 + 1);
    auto size = parse_size(format_size(bits));
    REQUIRE(size);
    CHECK(*size <= bits);
    CHECK(*size >= bits - bits / 9);
    auto length = parse_duration(format_duration(std::chrono::nanoseconds{bits}));
    REQUIRE(length);
    CHECK(length->count() <= static_cast<int64_t>(bits));
    CHECK(length->count() >= static_cast<int64_t>(bits - bits / 9));
  }
}

TEST_CASE("random text never crashes a parser") {
  std::mt19937 random{2};
  std::string_view alphabet{"0123456789.. -+gGmMkKtTiIbBnush\xff"};
  for (int i = 0; i < 50'000; ++i) {
    std::string text;
    for (auto n = random() % 12; n > 0; --n)
      text += alphabet[random() % alphabet.size()];
    if (auto size = parse_size(text))
      CHECK_FALSE(text.empty());
    if (auto length = parse_duration(text))
      CHECK(length->count() >= 0);
  }
}
