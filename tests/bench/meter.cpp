#include "meter.hpp"

#include <cstdlib>
#include <fstream>
#include <string>

namespace bench {

process_meter::process_meter(pid_t process)
    : process_(process), has_clock_(::clock_getcpuclockid(process, &clock_) == 0) {}

std::chrono::nanoseconds process_meter::processor_time() const {
  timespec used{};
  if (!has_clock_ || ::clock_gettime(clock_, &used) != 0)
    return std::chrono::nanoseconds{0};
  return std::chrono::seconds{used.tv_sec} + std::chrono::nanoseconds{used.tv_nsec};
}

uint64_t process_meter::status_field(const char* name) const {
  std::ifstream in{"/proc/" + std::to_string(process_) + "/status"};
  const std::string wanted{name};
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(wanted))
      return std::strtoull(line.c_str() + wanted.size(), nullptr, 10) * 1024;
  return 0;
}

uint64_t process_meter::resident() const {
  return status_field("VmRSS:");
}

uint64_t process_meter::peak() const {
  return status_field("VmHWM:");
}

void process_meter::forget_peak() const {
  // Where the kernel lacks this, peaks count from the start of the process: too much, never too
  // little.
  std::ofstream{"/proc/" + std::to_string(process_) + "/clear_refs"} << "5";
}

} // namespace bench
