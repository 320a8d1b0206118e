#include "troupe/actors/proc_stat.hpp"

#include "troupe/framework/host.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace troupe::cluster {

namespace {

// Takes spaces and a number from the front of `text`.
std::optional<uint64_t> take_number(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  uint64_t value = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{})
    return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

} // namespace

result<cpu_times> parse_cpu_times(std::string_view text) {
  constexpr std::string_view label = "cpu ";
  auto line = text.substr(0, text.find('\n'));
  // user, nice, system, idle, iowait, irq, softirq, steal. What follows (guests) is part of user.
  std::array<uint64_t, 8> ticks{};
  size_t count = 0;
  if (line.starts_with(label)) {
    line.remove_prefix(label.size());
    for (; count < ticks.size(); ++count) {
      auto value = take_number(line);
      if (!value)
        break;
      ticks[count] = *value;
    }
  }
  if (count < 4)
    return fail(errc::system, "/proc/stat does not begin with the times of all CPUs");
  cpu_times times;
  for (auto value : ticks)
    times.total += value;
  times.busy = times.total - ticks[3] - ticks[4];
  return times;
}

result<uint32_t> parse_load(std::string_view text) {
  auto whole = take_number(text);
  // The kernel prints two decimals.
  if (!whole || *whole > 1'000'000 || text.size() < 3 || text[0] != '.' || text[1] < '0' ||
      text[1] > '9' || text[2] < '0' || text[2] > '9')
    return fail(errc::system, "/proc/loadavg does not begin with a load average");
  auto hundredths = (text[1] - '0') * 10 + (text[2] - '0');
  return static_cast<uint32_t>(*whole * 1000) + static_cast<uint32_t>(hundredths) * 10;
}

result<host_sample> host_sampler::sample() {
  auto times = read_text_file(proc_ + "/stat").and_then(parse_cpu_times);
  if (!times)
    return fail(times.error());
  auto load = read_text_file(proc_ + "/loadavg").and_then(parse_load);
  if (!load)
    return fail(load.error());
  auto memory = read_text_file(proc_ + "/meminfo").and_then(parse_meminfo);
  if (!memory)
    return fail(memory.error());
  host_sample out;
  // Some of the kernel's counters may step back a little.
  if (before_.total != 0 && times->total > before_.total && times->busy > before_.busy) {
    auto permille = (times->busy - before_.busy) * 1000 / (times->total - before_.total);
    out.cpu_busy_permille = static_cast<uint32_t>(std::min<uint64_t>(permille, 1000));
  }
  before_ = *times;
  out.load_permille = *load;
  out.memory_total = memory->total;
  out.memory_available = memory->available;
  return out;
}

} // namespace troupe::cluster
