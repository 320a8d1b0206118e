#include "ucx_rows.hpp"

#include "external.hpp"

#include <algorithm>
#include <stdexcept>

namespace bench {

namespace {

// Where the last line of ucx_perftest has what we read.
constexpr size_t percentile_latency = 1; // µs, of half a round trip
constexpr size_t overall_bandwidth = 5;  // MiB/s
constexpr size_t overall_rate = 7;       // messages per second

double perftest(const context& c, const char* test, size_t bytes, size_t times, size_t wanted,
                const std::vector<std::string>& more = {}) {
  if (c.quick)
    times = std::min<size_t>(times, 10);
  const auto port = std::to_string(free_port("127.0.0.1"));
  std::vector<std::string> client{"ucx_perftest", "127.0.0.1",
                                  "-p",           port,
                                  "-f",           "-v",
                                  "-t",           test,
                                  "-s",           std::to_string(bytes),
                                  "-n",           std::to_string(times),
                                  "-w",           std::to_string(std::max<size_t>(times / 10, 1))};
  client.insert(client.end(), more.begin(), more.end());
  auto numbers = last_numbers(run_pair({"ucx_perftest", "-p", port}, client), " ,");
  if (numbers.size() <= wanted)
    throw std::runtime_error{"ucx_perftest printed fewer numbers than expected"};
  return numbers[wanted];
}

} // namespace

bool ucx_present() {
  return in_path("ucx_perftest");
}

sample ucx_round_trip(const context& c, bool spinning) {
  sample out;
  out.set("median, µs", 2 * perftest(c, "tag_lat", 64, spinning ? 50000 : 5000, percentile_latency,
                                     {"-R", "50", "-E", spinning ? "poll" : "sleep"}));
  return out;
}

sample ucx_one_way(const context& c) {
  sample out;
  out.set("M msg/s", perftest(c, "tag_bw", 64, 1000000, overall_rate) / 1e6);
  return out;
}

sample ucx_payload(const context& c, size_t bytes) {
  sample out;
  auto times = std::clamp<size_t>((size_t{2} << 30) / bytes, 3, 20000);
  out.set("GB/s", perftest(c, "tag_bw", bytes, times, overall_bandwidth) * (1 << 20) / 1e9);
  return out;
}

} // namespace bench
