// What a process costs: processor time and memory, read from the kernel.
#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>
#include <sys/types.h>

namespace bench {

/// Reads the counters of one process, which may be another one of the same user. A process that has
/// ended costs nothing more: its counters read 0.
class process_meter {
public:
  explicit process_meter(pid_t process);

  /// User and system time of all of its threads since it started.
  std::chrono::nanoseconds processor_time() const;

  /// Bytes of memory that it has resident now, what it shares with others included.
  uint64_t resident() const;

  /// The most that was resident since the start or the last `forget_peak`, in bytes.
  uint64_t peak() const;
  void forget_peak() const;

private:
  uint64_t status_field(const char* name) const;

  pid_t process_;
  clockid_t clock_{};
  bool has_clock_;
};

/// How far the resident memory of a process rises above what it is when this is made.
class memory_growth {
public:
  explicit memory_growth(pid_t process) : meter_(process), idle_(meter_.resident()) {
    meter_.forget_peak();
  }

  /// Up to now, in bytes.
  uint64_t bytes() const {
    auto peak = meter_.peak();
    return peak > idle_ ? peak - idle_ : 0;
  }

private:
  process_meter meter_;
  uint64_t idle_;
};

} // namespace bench
