// The clock of leases.
#pragma once

#include <chrono>
#include <ctime>

namespace troupe::cluster {

/// Time since this machine was started, the same in all of its processes. Never set; unlike the
/// steady clock it goes on while the machine is suspended. Any thread.
struct boot_clock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<boot_clock>;
  static constexpr bool is_steady = true;

  static time_point now() noexcept {
    timespec time{};
    ::clock_gettime(CLOCK_BOOTTIME, &time);
    return time_point{std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec}};
  }
};

} // namespace troupe::cluster
