#include "measurement.hpp"

#include <algorithm>
#include <limits>
#include <unistd.h>

namespace bench {

namespace {

double mebibytes(uint64_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
}

} // namespace

measurement::measurement(const effort& how_long, pid_t peer)
    : effort_(how_long), ours_{process_meter{::getpid()}, memory_growth{::getpid()}},
      theirs_{process_meter{peer}, memory_growth{peer}} {
  durations_.reserve(1 << 16);
  began_ = last_ = clock::now();
}

void measurement::begin() {
  warm_ = true;
  for (auto* each : {&ours_, &theirs_})
    each->used = each->meter.processor_time();
  began_ = last_ = clock::now();
}

void measurement::end() {
  ended_ = last_;
  for (auto* each : {&ours_, &theirs_}) {
    each->used = each->meter.processor_time() - each->used;
    each->grown_bytes = each->memory.bytes();
  }
}

bool measurement::unit_done(uint64_t messages) {
  auto now = clock::now();
  if (!warm_) {
    if (now - began_ >= effort_.warm_up)
      begin();
    return true;
  }
  constexpr std::chrono::nanoseconds most{std::numeric_limits<uint32_t>::max()};
  durations_.push_back(
      static_cast<uint32_t>(std::min<std::chrono::nanoseconds>(now - last_, most).count()));
  last_ = now;
  messages_ += messages;
  if (now - began_ < effort_.measured || durations_.size() < effort_.least_units)
    return true;
  end();
  return false;
}

double measurement::unit_us(double quantile) const {
  if (durations_.empty())
    return 0;
  auto sorted = durations_;
  auto at = static_cast<size_t>(quantile * static_cast<double>(sorted.size() - 1));
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(at), sorted.end());
  return sorted[at] / 1000.0;
}

void measurement::add_latency(sample& to) const {
  to.set("median, µs", unit_us(0.5));
  to.set("p99, µs", unit_us(0.99));
}

void measurement::add_rate(sample& to) const {
  to.set("M msg/s", static_cast<double>(messages_) / seconds() / 1e6);
}

void measurement::add_throughput(sample& to, size_t bytes_per_message) const {
  to.set("GB/s", static_cast<double>(messages_ * bytes_per_message) / seconds() / 1e9);
}

void measurement::add_costs(sample& to) const {
  auto used = std::chrono::duration<double, std::micro>(ours_.used + theirs_.used).count();
  to.set("CPU per message, µs", used / static_cast<double>(std::max<uint64_t>(messages_, 1)));
  to.set("peak memory sender, MiB", mebibytes(ours_.grown_bytes));
  to.set("peak memory receiver, MiB", mebibytes(theirs_.grown_bytes));
}

} // namespace bench
