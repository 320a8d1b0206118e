#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>
#include <troupe/actors/proc_stat.hpp>
#include <troupe/actors/state_page.hpp>
#include <unistd.h>

using namespace troupe;
using namespace troupe::cluster;

namespace {

struct alignas(64) page_memory {
  std::array<std::byte, 192> bytes{};
};

state_snapshot some_state(uint64_t seed) {
  state_snapshot state;
  state.incarnation = 0xfeed;
  state.epoch = seed;
  state.cpu_busy_permille = static_cast<uint32_t>(seed % 1001);
  state.load_permille = static_cast<uint32_t>(seed * 3 % 1'000'000);
  state.memory_total = seed << 20;
  state.memory_available = seed << 19;
  state.running_tasks = seed % 257;
  state.finished_tasks = seed * 7;
  return state;
}

/// What an RDMA Read of the page gives: its words in any order, here the order of `from`.
std::array<std::byte, state_page_bytes> copy_of(page_memory& memory, size_t from) {
  auto& words = reinterpret_cast<state_page*>(memory.bytes.data())->words;
  std::array<std::byte, state_page_bytes> copy{};
  for (size_t i = 0; i < words.size(); ++i) {
    auto index = (from + i) % words.size();
    auto word = words[index].load(std::memory_order_relaxed);
    std::memcpy(copy.data() + index * sizeof word, &word, sizeof word);
  }
  return copy;
}

} // namespace

TEST_CASE("a page is read as it was published") {
  page_memory memory;
  auto writer = state_page_writer::create(memory.bytes);
  REQUIRE(writer);
  for (uint64_t i = 0; i < 1000; ++i) {
    writer->publish(some_state(i));
    auto read = read_snapshot(memory.bytes);
    REQUIRE(read);
    CHECK(*read == some_state(i));
  }
}

TEST_CASE("memory that does not suit a page is refused") {
  page_memory memory;
  auto bytes = transport::byte_span{memory.bytes};
  CHECK(state_page_writer::create(bytes.subspan(8)).error().code() == errc::invalid_argument);
  CHECK(state_page_writer::create(bytes.first(127)).error().code() == errc::invalid_argument);
  CHECK(state_page_writer::create({}).error().code() == errc::invalid_argument);
}

TEST_CASE("what is no page, or a part of one, is refused") {
  page_memory memory;
  CHECK(read_snapshot(memory.bytes).error().code() == errc::protocol_violation);
  auto writer = state_page_writer::create(memory.bytes);
  // Nothing has been published.
  CHECK(read_snapshot(memory.bytes).error().code() == errc::protocol_violation);
  writer->publish(some_state(1));
  auto bytes = transport::byte_view{memory.bytes};
  for (size_t length = 0; length < state_page_bytes; ++length)
    CHECK(read_snapshot(bytes.first(length)).error().code() == errc::protocol_violation);
  auto copy = memory.bytes;
  copy[4] = std::byte{9};
  CHECK(read_snapshot(copy).error().code() == errc::version_mismatch);
}

TEST_CASE("a page that mixes two states is torn, whichever words are new") {
  page_memory memory;
  auto writer = state_page_writer::create(memory.bytes);
  writer->publish(some_state(1));
  auto before = copy_of(memory, 0);
  writer->publish(some_state(2));
  auto after = copy_of(memory, 0);
  for (unsigned mask = 1; mask < 0xffff; ++mask) {
    auto mixed = before;
    for (size_t word = 0; word < 16; ++word)
      if (mask >> word & 1)
        std::memcpy(mixed.data() + 8 * word, after.data() + 8 * word, 8);
    auto read = read_snapshot(mixed);
    if (mixed == before || mixed == after)
      CHECK(read);
    else
      CHECK(read.error().code() == errc::no_resources);
  }
}

TEST_CASE("random and damaged bytes are never a state") {
  std::mt19937 random{8};
  page_memory memory;
  auto writer = state_page_writer::create(memory.bytes);
  writer->publish(some_state(3));
  auto sound = copy_of(memory, 0);
  for (size_t bit = 0; bit < sound.size() * 8; ++bit) {
    auto damaged = sound;
    damaged[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    CHECK_FALSE(read_snapshot(damaged));
  }
  for (int i = 0; i < 10'000; ++i) {
    auto bytes = sound;
    for (auto at = i % 2 == 0 ? 0u : 8u; at < bytes.size(); ++at)
      bytes[at] = static_cast<std::byte>(random());
    CHECK_FALSE(read_snapshot(bytes));
  }
}

TEST_CASE("a reader beside a busy writer sees whole states only, and newer ones") {
  page_memory memory;
  auto writer = state_page_writer::create(memory.bytes);
  writer->publish(some_state(0));
  std::atomic<bool> stop{false};
  std::thread publisher{[&] {
    for (uint64_t i = 1; !stop.load(std::memory_order_relaxed); ++i)
      writer->publish(some_state(i));
  }};
  uint64_t last = 0;
  size_t whole = 0;
  for (size_t i = 0; i < 50'000 || (whole == 0 && i < 50'000'000); ++i) {
    auto read = read_snapshot(copy_of(memory, 0));
    if (!read) {
      CHECK(read.error().code() == errc::no_resources);
      continue;
    }
    ++whole;
    if (*read != some_state(read->epoch) || read->epoch < last)
      FAIL("a torn state was accepted");
    last = read->epoch;
  }
  stop = true;
  publisher.join();
  CHECK(whole > 0);
}

TEST_CASE("the figures of /proc are read") {
  auto times = parse_cpu_times("cpu  100 10 50 800 40 3 7 5 60 0\ncpu0 1 2 3 4\n");
  REQUIRE(times);
  CHECK(times->total == 1015);
  CHECK(times->busy == 175);
  CHECK(parse_cpu_times("cpu  1 2 3 4\n")->total == 10);
  for (auto text : {"", "cpu", "cpu  1 2 3\n", "cpu0 1 2 3 4\n", "cpu  a b c d\n",
                    "cpu  1 2 3 99999999999999999999\n", "intr 5\ncpu  1 2 3 4\n"}) {
    CAPTURE(text);
    CHECK(parse_cpu_times(text).error().code() == errc::system);
  }
  CHECK(*parse_load("0.05 0.10 0.20 1/234 5678\n") == 50);
  CHECK(*parse_load("12.34 0.10 0.20 1/234 5678\n") == 12'340);
  for (auto text : {"", "x", "1", "1.", "1.2", "-1.00", "1.x0 ", "99999999.00 "}) {
    CAPTURE(text);
    CHECK(parse_load(text).error().code() == errc::system);
  }
}

TEST_CASE("samples of this host are plausible") {
  host_sampler sampler;
  auto first = sampler.sample();
  REQUIRE_MESSAGE(first, first.error().text());
  CHECK(first->cpu_busy_permille == 0);
  CHECK(first->memory_total > 0);
  CHECK(first->memory_available > 0);
  CHECK(first->memory_available <= first->memory_total);
  auto second = sampler.sample();
  REQUIRE(second);
  CHECK(second->cpu_busy_permille <= 1000);
}

TEST_CASE("busy time is that between two samples") {
  auto pattern = (std::filesystem::temp_directory_path() / "troupe-proc-XXXXXX").string();
  std::filesystem::path proc = ::mkdtemp(pattern.data());
  auto write = [&](const char* name, const char* text) { std::ofstream{proc / name} << text; };
  write("meminfo", "MemTotal: 100 kB\nMemAvailable: 50 kB\n");
  write("loadavg", "1.50 0 0 1/2 3\n");
  host_sampler sampler{proc.string()};
  CHECK_FALSE(sampler.sample());
  write("stat", "cpu  100 0 0 900 0\n");
  auto sample = sampler.sample();
  REQUIRE(sample);
  CHECK(sample->cpu_busy_permille == 0);
  CHECK(sample->load_permille == 1500);
  CHECK(sample->memory_total == 102'400);
  CHECK(sample->memory_available == 51'200);
  write("stat", "cpu  130 0 0 970 0\n");
  CHECK(sampler.sample()->cpu_busy_permille == 300);
  write("stat", "cpu  129 0 0 980 0\n");
  CHECK(sampler.sample()->cpu_busy_permille == 0);
  write("loadavg", "");
  CHECK(sampler.sample().error().code() == errc::system);
  std::filesystem::remove_all(proc);
}
