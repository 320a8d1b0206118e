// The course that every measurement takes: idle, warm-up, measured time.
#pragma once

#include "meter.hpp"
#include "sample.hpp"

#include <chrono>
#include <cstdint>
#include <sys/types.h>
#include <vector>

namespace bench {

/// How long to measure. Time, not a count, so that slow and fast columns take equally long.
struct effort {
  std::chrono::nanoseconds warm_up{};
  std::chrono::nanoseconds measured{};
  uint64_t least_units = 1; ///< measured at least, however long they take
};

/// Follows two processes, the calling one and its peer, through one measurement. Work comes in
/// units (a round trip, a window, a payload), each of one or more messages.
///
///     measurement course{effort, peer};   // both are connected and idle
///     do
///       ... one unit ...
///     while (course.unit_done(messages));
///
/// One thread at a time.
class measurement {
public:
  using clock = std::chrono::steady_clock;

  measurement(const effort& how_long, pid_t peer);

  /// Call after each unit. @returns whether to go on.
  bool unit_done(uint64_t messages);

  // What was measured, added to a sample. The first is for units of one message.
  void add_latency(sample& to) const; ///< of a unit: median and p99
  void add_rate(sample& to) const;    ///< million messages per second
  void add_throughput(sample& to, size_t bytes_per_message) const;

  /// Processor time per message, of both processes, and how far each one's memory rose above its
  /// idle size.
  void add_costs(sample& to) const;

private:
  void begin();
  void end();
  double unit_us(double quantile) const;
  double seconds() const { return std::chrono::duration<double>(ended_ - began_).count(); }

  struct side {
    process_meter meter;
    memory_growth memory;
    uint64_t grown_bytes = 0;
    std::chrono::nanoseconds used{};
  };

  effort effort_;
  side ours_;
  side theirs_;
  bool warm_ = false;
  clock::time_point last_;
  clock::time_point began_;
  clock::time_point ended_;
  uint64_t messages_ = 0;
  std::vector<uint32_t> durations_; // ns, of measured units
};

} // namespace bench
