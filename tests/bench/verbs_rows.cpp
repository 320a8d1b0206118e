#include "verbs_rows.hpp"

#include "external.hpp"

#include <algorithm>
#include <stdexcept>

namespace bench {

namespace {

const std::string prefix = "verbs:";

// Where the last line of the programs has what we read.
constexpr size_t typical_latency = 4;   // ib_send_lat: µs, of half a round trip
constexpr size_t average_bandwidth = 3; // ib_read_bw: MiB/s

double perftest(const context& c, const char* program, size_t bytes, size_t times, size_t wanted,
                bool sleeping) {
  const auto port = std::to_string(free_port(c.address));
  // -R: connected by rdma_cm, which every device knows; -F: no word about the processor's
  // frequency.
  std::vector<std::string> server{program,
                                  "-d",
                                  c.device.substr(prefix.size()),
                                  "-R",
                                  "-F",
                                  "-p",
                                  port,
                                  "-s",
                                  std::to_string(bytes),
                                  "-n",
                                  std::to_string(c.quick ? size_t{5} : times)};
  if (sleeping)
    server.emplace_back("-e");
  auto client = server;
  client.push_back(c.address);
  auto numbers = last_numbers(run_pair(server, client), " \t");
  if (numbers.size() <= wanted)
    throw std::runtime_error{std::string{program} + " printed fewer numbers than expected"};
  return numbers[wanted];
}

} // namespace

std::string verbs_absent(const context& c) {
  if (!c.device.starts_with(prefix))
    return "needs --device verbs:NAME";
  if (!in_path("ib_send_lat") || !in_path("ib_read_bw"))
    return "not installed; Debian package: perftest";
  return {};
}

sample verbs_round_trip(const context& c, bool spinning) {
  sample out;
  out.set("median, µs", 2 * perftest(c, "ib_send_lat", 64, 1000, typical_latency, !spinning));
  return out;
}

sample verbs_payload(const context& c, size_t bytes) {
  sample out;
  auto times = std::clamp<size_t>((size_t{64} << 20) / bytes, 5, 1000);
  out.set("GB/s",
          perftest(c, "ib_read_bw", bytes, times, average_bandwidth, false) * (1 << 20) / 1e9);
  return out;
}

} // namespace bench
