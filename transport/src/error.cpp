#include "troupe/transport/error.hpp"

#include <cerrno>
#include <system_error>

namespace troupe {

std::string_view to_string(errc code) noexcept {
  switch (code) {
  case errc::none:
    return "none";
  case errc::no_resources:
    return "no_resources";
  case errc::timeout:
    return "timeout";
  case errc::invalid_argument:
    return "invalid_argument";
  case errc::unsupported:
    return "unsupported";
  case errc::no_such_device:
    return "no_such_device";
  case errc::not_found:
    return "not_found";
  case errc::already_exists:
    return "already_exists";
  case errc::address_in_use:
    return "address_in_use";
  case errc::cannot_resolve:
    return "cannot_resolve";
  case errc::refused:
    return "refused";
  case errc::unreachable:
    return "unreachable";
  case errc::version_mismatch:
    return "version_mismatch";
  case errc::limit_too_low:
    return "limit_too_low";
  case errc::permission_denied:
    return "permission_denied";
  case errc::unauthenticated:
    return "unauthenticated";
  case errc::local_length:
    return "local_length";
  case errc::remote_access:
    return "remote_access";
  case errc::flushed:
    return "flushed";
  case errc::disconnected:
    return "disconnected";
  case errc::protocol_violation:
    return "protocol_violation";
  case errc::system:
    return "system";
  }
  return "unknown";
}

namespace {

errc code_of(int errno_value) {
  switch (errno_value) {
  case EADDRINUSE:
    return errc::address_in_use;
  case ECONNREFUSED:
    return errc::refused;
  case EHOSTUNREACH:
  case ENETUNREACH:
    return errc::unreachable;
  case ETIMEDOUT:
    return errc::timeout;
  case EACCES:
  case EPERM:
    return errc::permission_denied;
  case ENOMEM:
    return errc::limit_too_low;
  default:
    return errc::system;
  }
}

} // namespace

error system_error(std::string_view what, int errno_value) {
  return {code_of(errno_value),
          std::string{what} + ": " + std::generic_category().message(errno_value)};
}

} // namespace troupe
