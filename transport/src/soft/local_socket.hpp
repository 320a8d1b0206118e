// Messages with descriptors on a Unix socket (SOCK_SEQPACKET).
#pragma once

#include "soft/descriptor.hpp"
#include "troupe/transport/error.hpp"

#include <array>
#include <span>
#include <sys/types.h>

namespace troupe::transport::soft {

constexpr size_t most_descriptors = 4;

enum class local_outcome { message, nothing, ended };

struct local_message {
  size_t length = 0; ///< more than the buffer when it was cut off
  std::array<descriptor, most_descriptors> descriptors;
};

/// Sends one message, whole or not at all. Never blocks.
/// @returns whether it went.
bool send_message(int socket, byte_view bytes, std::span<const int> descriptors);

/// Takes one message. Never blocks. Superfluous descriptors are closed.
local_outcome receive_message(int socket, byte_span into, local_message& message);

struct peer_identity {
  pid_t process = 0; ///< 0 when it lives in another pid namespace
  uid_t user = 0;
};

result<peer_identity> identity_of_peer(int socket);

} // namespace troupe::transport::soft
