#include "soft/liveness.hpp"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace troupe::transport::soft {

namespace {

constexpr std::chrono::seconds interval{10};
constexpr int most_silent_looks = 3;

/// Whether bytes are under way and nothing was acknowledged since the last look. A peer that takes
/// nothing more has none under way: the system only asks it now and then, and it answers.
bool is_silent(int socket) {
  tcp_info about{};
  socklen_t size = sizeof about;
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &about, &size) != 0)
    return false;
  return about.tcpi_unacked > 0 && std::chrono::milliseconds{about.tcpi_last_ack_recv} >= interval;
}

} // namespace

liveness::liveness(context& device, int socket, std::function<void()> lost)
    : device_(device), socket_(socket), lost_(std::move(lost)),
      next_look_(steady_clock::now() + interval) {
  device_.await_deadline(*this);
}

liveness::~liveness() {
  device_.forget_deadline(*this);
}

void liveness::on_deadline() {
  silent_looks_ = is_silent(socket_) ? silent_looks_ + 1 : 0;
  if (silent_looks_ >= most_silent_looks) {
    auto lost = std::move(lost_); // which destroys this
    return lost();
  }
  next_look_ = steady_clock::now() + interval;
  device_.await_deadline(*this);
}

} // namespace troupe::transport::soft
