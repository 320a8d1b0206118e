#include "soft/tcp_stream.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <sys/uio.h>

namespace troupe::transport::soft {

namespace {

/// Whether the system gave the peer up without having heard of its end.
bool means_lost(int error) {
  return error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH;
}

constexpr size_t gathering = 32 * 1024; // bytes that wait for one system call
constexpr size_t small = 4 * 1024;      // a body up to this size is worth copying
constexpr size_t input_size = 64 * 1024;
constexpr size_t large = 16 * 1024;      // from here on, received where it belongs
constexpr size_t next_header = 4 * 1024; // taken along with it, so that little of what follows it
                                         // has to be copied

} // namespace

tcp_stream::tcp_stream(descriptor socket) : socket_(std::move(socket)), in_(input_size) {
  out_.reserve(gathering);
}

size_t tcp_stream::write(byte_view head, byte_view body) {
  auto total = head.size() + body.size();
  if (body.size() <= small) {
    if (out_.size() + total > gathering && !flush())
      return 0;
    append(head);
    append(body);
    return total;
  }
  if (!flush())
    return 0;
  return send_now(head, body);
}

void tcp_stream::append(byte_view bytes) {
  out_.insert(out_.end(), bytes.begin(), bytes.end());
}

bool tcp_stream::flush() {
  while (out_start_ < out_.size()) {
    auto sent = send_now({out_.data() + out_start_, out_.size() - out_start_}, {});
    if (sent == 0)
      return false;
    out_start_ += sent;
  }
  out_.clear();
  out_start_ = 0;
  return true;
}

size_t tcp_stream::send_now(byte_view head, byte_view body) {
  if (broken_)
    return 0;
  iovec parts[2] = {{const_cast<std::byte*>(head.data()), head.size()},
                    {const_cast<std::byte*>(body.data()), body.size()}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  for (;;) {
    auto sent = sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0)
      return static_cast<size_t>(sent);
    if (errno == EINTR)
      continue;
    // What the peer sent before it went is still to be read: reading finds the end.
    broken_ = errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOBUFS;
    lost_ = lost_ || means_lost(errno);
    return 0;
  }
}

size_t tcp_stream::receive_now(byte_span into, size_t ahead) {
  iovec parts[2] = {{into.data(), into.size()}, {in_.data(), ahead}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  for (;;) {
    auto got = recvmsg(socket_.get(), &message, MSG_DONTWAIT);
    if (got > 0) {
      auto count = std::min(static_cast<size_t>(got), into.size());
      in_start_ = 0;
      in_end_ = static_cast<size_t>(got) - count;
      return count;
    }
    if (got < 0 && errno == EINTR)
      continue;
    ended_ = got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOMEM);
    lost_ = lost_ || (got < 0 && means_lost(errno));
    return 0;
  }
}

size_t tcp_stream::read(byte_span into) {
  if (into.empty())
    return 0;
  if (in_start_ == in_end_) {
    if (ended_)
      return 0;
    if (into.size() >= large)
      return receive_now(into, next_header);
    receive_now({}, in_.size());
  }
  auto count = std::min(into.size(), in_end_ - in_start_);
  std::memcpy(into.data(), in_.data() + in_start_, count);
  in_start_ += count;
  return count;
}

} // namespace troupe::transport::soft
