// The one error type of Troupe: a code to act on and a text to show.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace troupe {

/// What went wrong, in terms a caller can act on.
enum class errc : unsigned char {
  none = 0,
  // -- asking again later may help ------------------------------------------
  no_resources, ///< queue full, no credit: not a failure, post again after a completion
  timeout,      ///< the deadline passed first
  // -- the request is wrong ---------------------------------------------------
  invalid_argument, ///< a value out of range, a malformed text
  unsupported,      ///< the device cannot do this
  no_such_device,   ///< no device of that name
  not_found,        ///< no node, job, actor or file of that name
  already_exists,   ///< a name or id that is taken
  // -- set-up -------------------------------------------------------------------
  address_in_use,    ///< another process listens there
  cannot_resolve,    ///< the host name has no address
  refused,           ///< nobody listens there, or the listener said no
  unreachable,       ///< no route, or no answer
  version_mismatch,  ///< the peer speaks another protocol
  limit_too_low,     ///< a limit of the system (memlock, files) stands in the way
  permission_denied, ///< the system or the peer forbids it
  unauthenticated,   ///< one side has no key, or the two have different ones
  // -- the data path --------------------------------------------------------------
  local_length,       ///< the message is longer than the receive buffer
  remote_access,      ///< wrong key, missing right, or outside the region
  flushed,            ///< the queue pair failed before this work was done
  disconnected,       ///< the peer closed the connection or died
  protocol_violation, ///< the peer sent what the protocol does not allow
  system,             ///< anything else the operating system reported
};

/// Stable lower-case name of `code`, for logs and JSON.
std::string_view to_string(errc code) noexcept;

/// An error with its explanation. The text says what failed, on what, and why; where there is a
/// remedy, it says that too. Cheap to move.
class error {
public:
  error() = default;
  error(errc code, std::string text) : code_(code), text_(std::move(text)) {}

  errc code() const noexcept { return code_; }
  const std::string& text() const noexcept { return text_; }
  explicit operator bool() const noexcept { return code_ != errc::none; }

private:
  errc code_ = errc::none;
  std::string text_;
};

/// A value or the error that stands in its way.
template <class T>
using result = tl::expected<T, error>;

/// Done, or the error that stands in the way.
using status = result<void>;

/// Makes the failed state of any `result`.
inline tl::unexpected<error> fail(errc code, std::string text) {
  return tl::unexpected<error>(error{code, std::move(text)});
}

/// Passes an error on.
inline tl::unexpected<error> fail(error e) {
  return tl::unexpected<error>(std::move(e));
}

/// An error made of `what` and the system's explanation of `errno_value`, with the code that fits.
/// Knows EADDRINUSE, ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, ETIMEDOUT, EACCES, EPERM and ENOMEM.
error system_error(std::string_view what, int errno_value);

} // namespace troupe
