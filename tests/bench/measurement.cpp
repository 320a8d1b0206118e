#include "measurement.hpp"

#include <algorithm>
#include <limits>
#include <unistd.h>

namespace bench {

namespace {

constexpr double mebibyte = 1 << 20;

double grown(uint64_t idle, uint64_t peak) {
  return peak > idle ? static_cast<double>(peak - idle) / mebibyte : 0.0;
}

} // namespace

measurement::measurement(const effort& how_long, pid_t peer)
    : effort_(how_long), ours_{.meter = process_meter{::getpid()}}, theirs_{.meter = process_meter{
                                                                                peer}} {
  durations_.reserve(1 << 16);
  for (auto* each : {&ours_, &theirs_}) {
    each->idle_bytes = each->meter.resident();
    each->meter.forget_peak();
  }
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
    each->peak_bytes = each->meter.peak();
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

double measurement::unit_us(double q) const {
  if (durations_.empty())
    return 0;
  auto sorted = durations_;
  auto at = static_cast<size_t>(q * static_cast<double>(sorted.size() - 1));
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(at), sorted.end());
  return sorted[at] / 1000.0;
}

void measurement::add_costs(sample& to) const {
  auto used = std::chrono::duration<double, std::micro>(ours_.used + theirs_.used).count();
  to.set("CPU per message, µs", used / static_cast<double>(std::max<uint64_t>(messages_, 1)));
  to.set("peak memory sender, MiB", grown(ours_.idle_bytes, ours_.peak_bytes));
  to.set("peak memory receiver, MiB", grown(theirs_.idle_bytes, theirs_.peak_bytes));
}

} // namespace bench
