#include "soft/local_socket.hpp"

#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <sys/uio.h>

namespace troupe::transport::soft {

namespace {

union control_buffer {
  cmsghdr alignment;
  char bytes[CMSG_SPACE(most_descriptors * sizeof(int))];
};

} // namespace

bool send_message(int socket, byte_view bytes, std::span<const int> descriptors) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  control_buffer control{};
  if (!descriptors.empty()) {
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    auto header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  for (;;) {
    auto sent = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR)
      continue;
    return sent == static_cast<ssize_t>(bytes.size());
  }
}

local_outcome receive_message(int socket, byte_span into, local_message& received) {
  iovec part{into.data(), into.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  control_buffer control{};
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  ssize_t got = 0;
  do {
    got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_TRUNC);
  } while (got < 0 && errno == EINTR);
  if (got < 0)
    return errno == EAGAIN || errno == EWOULDBLOCK ? local_outcome::nothing : local_outcome::ended;
  size_t index = 0;
  for (auto header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
      continue;
    auto count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
      descriptor owned{fd};
      if (index < received.descriptors.size())
        received.descriptors[index++] = std::move(owned);
    }
  }
  // An empty message does not exist in our protocol: it is how the end is reported.
  if (got == 0)
    return local_outcome::ended;
  received.length = static_cast<size_t>(got);
  return local_outcome::message;
}

result<peer_identity> identity_of_peer(int socket) {
  ucred about{};
  socklen_t size = sizeof about;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &about, &size) != 0)
    return fail(system_error("SO_PEERCRED", errno));
  return peer_identity{about.pid, about.uid};
}

} // namespace troupe::transport::soft
