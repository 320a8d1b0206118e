#include "executor/spool_file.hpp"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <sys/stat.h>

namespace troupe::cluster {

namespace {

std::string_view remedy_for(int errno_value) {
  switch (errno_value) {
  case ENOSPC:
  case EDQUOT:
    return "free space there or choose another spool directory";
  case EMFILE:
  case ENFILE:
    return "raise the limit of open files (ulimit -n)";
  case ENOENT:
  case ENOTDIR:
    return "create that directory or choose another spool directory";
  case EACCES:
  case EPERM:
  case EROFS:
    return "make that directory writable or choose another spool directory";
  default:
    return "choose another spool directory";
  }
}

tl::unexpected<error> cannot_create(const std::filesystem::path& directory, int errno_value) {
  auto cause = system_error("cannot create an output file in " + directory.string(), errno_value);
  auto code = errno_value == EMFILE || errno_value == ENFILE ? errc::limit_too_low : cause.code();
  return fail(code, cause.text() + " (" + std::string{remedy_for(errno_value)} + ")");
}

} // namespace

result<unique_fd> open_spool_file(const std::filesystem::path& directory) {
  unique_fd file{
      ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_APPEND | O_CLOEXEC, S_IRUSR | S_IWUSR)};
  if (file)
    return file;
  // EISDIR is what kernels and file systems say that take O_TMPFILE for a plain open.
  if (errno == EOPNOTSUPP || errno == EISDIR)
    return open_unlinked_spool_file(directory);
  return cannot_create(directory, errno);
}

result<unique_fd> open_unlinked_spool_file(const std::filesystem::path& directory) {
  auto name = (directory / "task-output-XXXXXX").string();
  unique_fd file{::mkostemp(name.data(), O_APPEND | O_CLOEXEC)};
  if (!file)
    return cannot_create(directory, errno);
  if (::unlink(name.c_str()) != 0)
    return fail(system_error("cannot remove the name of the output file " + name, errno));
  return file;
}

} // namespace troupe::cluster
