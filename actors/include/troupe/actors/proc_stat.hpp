// How busy this host is, from /proc.
#pragma once

#include "troupe/transport/error.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::cluster {

/// Time that all CPUs together have spent since the host started, in clock ticks.
struct cpu_times {
  uint64_t busy = 0;
  uint64_t total = 0;
};

/// Reads the text of /proc/stat. Waiting for disks counts as idle.
/// @returns `errc::system` when it has no line "cpu" with at least four numbers.
result<cpu_times> parse_cpu_times(std::string_view text);

/// Reads the text of /proc/loadavg.
/// @returns the load average over a minute times 1000; `errc::system` when there is none.
result<uint32_t> parse_load(std::string_view text);

/// One sample, in the units of the state page.
struct host_sample {
  uint32_t cpu_busy_permille = 0; ///< since the sample before; 0 in the first
  uint32_t load_permille = 0;
  uint64_t memory_total = 0;     ///< bytes
  uint64_t memory_available = 0; ///< bytes
};

/// Takes samples. One thread.
class host_sampler {
public:
  /// `proc` is where the three files are.
  explicit host_sampler(std::string proc = "/proc") : proc_(std::move(proc)) {}

  /// Reads three small files; does not wait for anything.
  /// @returns why one of them could not be read or understood.
  result<host_sample> sample();

private:
  std::string proc_;
  cpu_times before_;
};

} // namespace troupe::cluster
