#include "troupe/framework/host.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <optional>
#include <sched.h>
#include <unistd.h>

namespace troupe {

namespace {

constexpr size_t largest_text = size_t{16} << 20;

// The value of a line such as "MemTotal:       16384 kB", in bytes.
std::optional<uint64_t> kilobytes_of(std::string_view text, std::string_view label) {
  auto at = text.find(label);
  if (at == std::string_view::npos || (at != 0 && text[at - 1] != '\n'))
    return std::nullopt;
  text.remove_prefix(at + label.size());
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  uint64_t value = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  if (code != std::errc{} || !text.starts_with(" kB") || value > UINT64_MAX / 1024)
    return std::nullopt;
  return value * 1024;
}

} // namespace

std::string host_name() {
  std::array<char, 256> name{};
  // One byte less than there is: a name that was cut off need not be terminated.
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0')
    return "localhost";
  return name.data();
}

uint32_t available_cpus() {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0)
    return static_cast<uint32_t>(CPU_COUNT(&allowed));
  // A machine with more CPUs than the fixed set holds.
  auto online = ::sysconf(_SC_NPROCESSORS_ONLN);
  return online < 1 ? 1u : static_cast<uint32_t>(online);
}

result<memory_figures> parse_meminfo(std::string_view text) {
  auto total = kilobytes_of(text, "MemTotal:");
  auto available = kilobytes_of(text, "MemAvailable:");
  if (!total || !available)
    return fail(errc::system, "/proc/meminfo does not tell MemTotal and MemAvailable in kB");
  return memory_figures{*total, *available};
}

result<std::string> read_text_file(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return fail(system_error("cannot read " + path, errno));
  std::string text;
  std::array<char, 4096> part;
  int failure = 0;
  while (text.size() <= largest_text) {
    auto count = ::read(fd, part.data(), part.size());
    if (count > 0)
      text.append(part.data(), static_cast<size_t>(count));
    else if (count == 0)
      break;
    else if (errno != EINTR) {
      failure = errno;
      break;
    }
  }
  ::close(fd);
  if (failure == EISDIR)
    return fail(errc::invalid_argument, "cannot read " + path + ": it is a directory");
  if (failure != 0)
    return fail(system_error("cannot read " + path, failure));
  if (text.size() > largest_text)
    return fail(errc::invalid_argument, "cannot read " + path + ": it is larger than 16 MiB");
  return text;
}

} // namespace troupe
