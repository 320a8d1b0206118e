#include "ucx_rows.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sstream>
#include <stdexcept>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace bench {

namespace {

constexpr std::chrono::seconds limit{60};

/// A port that nobody has now.
uint16_t free_port() {
  auto fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(fd, generic, size) != 0 || ::getsockname(fd, generic, &size) != 0)
    throw std::runtime_error{"no port is free"};
  ::close(fd);
  return ntohs(address.sin_port);
}

/// Runs both sides of `ucx_perftest` with `arguments`. @returns the numbers of its last line:
/// iterations; percentile, average, overall latency in µs; average, overall bandwidth in MiB/s;
/// average, overall messages per second.
std::vector<double> perftest(std::vector<std::string> arguments) {
  const auto port = std::to_string(free_port());
  child server{{"ucx_perftest", "-p", port}, -1, true};
  arguments.insert(arguments.begin(), {"ucx_perftest", "127.0.0.1", "-p", port, "-f", "-v"});
  std::string output;
  const auto deadline = child::clock::now() + limit;
  for (;;) {
    child client{arguments, -1, true};
    auto end = client.finish(limit, output);
    if (!end.timed_out && end.status == 0)
      break;
    // The server may not listen yet.
    if (end.timed_out || child::clock::now() >= deadline)
      throw std::runtime_error{"ucx_perftest: " + end.text()};
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
  }
  std::istringstream lines{output};
  std::string last;
  for (std::string line; std::getline(lines, line);)
    if (!line.empty())
      last = line;
  std::vector<double> numbers;
  std::istringstream fields{last};
  for (std::string field; std::getline(fields, field, ',');)
    numbers.push_back(std::stod(field));
  if (numbers.size() != 8)
    throw std::runtime_error{"ucx_perftest printed: " + last};
  return numbers;
}

std::vector<std::string> test(const context& c, const char* name, size_t bytes, size_t times) {
  if (c.quick)
    times = std::min<size_t>(times, 10);
  return {"-t", name,
          "-s", std::to_string(bytes),
          "-n", std::to_string(times),
          "-w", std::to_string(std::max<size_t>(times / 10, 1))};
}

} // namespace

sample ucx_round_trip(const context& c, bool spinning) {
  auto arguments = test(c, "tag_lat", 64, spinning ? 50000 : 5000);
  arguments.insert(arguments.end(), {"-R", "50", "-E", spinning ? "poll" : "sleep"});
  sample out;
  out.set("median, µs", 2 * perftest(arguments)[1]); // it tells half of the round trip
  return out;
}

sample ucx_one_way(const context& c) {
  sample out;
  out.set("M msg/s", perftest(test(c, "tag_bw", 64, 1000000))[7] / 1e6);
  return out;
}

sample ucx_payload(const context& c, size_t bytes) {
  sample out;
  auto times = std::clamp<size_t>((size_t{2} << 30) / bytes, 3, 20000);
  out.set("GB/s", perftest(test(c, "tag_bw", bytes, times))[5] * (1 << 20) / 1e9);
  return out;
}

} // namespace bench
