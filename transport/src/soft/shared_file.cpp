#include "soft/shared_file.hpp"

#include <cerrno>
#include <fcntl.h>
#include <limits>
#include <sys/mman.h>
#include <sys/stat.h>

namespace troupe::transport::soft {

size_t whole_pages(size_t size) {
  static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return (size + page - 1) / page * page;
}

result<descriptor> make_shared_file(const std::string& name, size_t size) {
  auto what = [&](const char* call) {
    return std::string{call} + " of " + std::to_string(size) + " bytes for " + name;
  };
  descriptor file{memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  if (!file)
    return fail(system_error(what("memfd_create"), errno));
  if (size > static_cast<size_t>(std::numeric_limits<off_t>::max()))
    return fail(system_error(what("ftruncate"), EFBIG));
  if (ftruncate(file.get(), static_cast<off_t>(size)) != 0)
    return fail(system_error(what("ftruncate"), errno));
  if (fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
    return fail(system_error(what("sealing"), errno));
  return file;
}

status forbid_writers(int file) {
  if (fcntl(file, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) != 0)
    return fail(system_error("sealing a memory file against writers", errno));
  return {};
}

status check_shared_file(int file, size_t size) {
  int seals = fcntl(file, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
    return fail(errc::protocol_violation, "the peer passed a memory file that may shrink");
  struct stat about {};
  if (fstat(file, &about) != 0 || about.st_size < 0 || static_cast<size_t>(about.st_size) < size)
    return fail(errc::protocol_violation, "the peer passed a memory file that is too small");
  return {};
}

result<mapping> map_shared_file(int file, size_t size, bool writable) {
  int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  auto start = mmap(nullptr, size, protection, MAP_SHARED, file, 0);
  if (start == MAP_FAILED)
    return fail(system_error("mmap of " + std::to_string(size) + " bytes of shared memory", errno));
  mapping made{static_cast<std::byte*>(start), size};
  if (madvise(start, size, MADV_DONTFORK) != 0)
    return fail(system_error("madvise of shared memory", errno));
  return made;
}

} // namespace troupe::transport::soft
