#include "soft/lingering.hpp"

#include <array>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace troupe::transport::soft {

namespace {

constexpr std::chrono::seconds patience{5};
constexpr std::chrono::seconds patience_of_closing{1};

} // namespace

void lingering::begin(context& device, std::unique_ptr<tcp_stream> stream) {
  auto made = std::make_unique<lingering>(device, std::move(stream));
  if (made->over())
    return;
  auto fd = made->stream_->socket();
  uint32_t events = made->said_all_ ? EPOLLIN : EPOLLIN | EPOLLOUT;
  if (!device.watch(fd, events, *made))
    return;
  device.await_deadline(*made);
  device.keep(std::move(made));
}

lingering::lingering(context& device, std::unique_ptr<tcp_stream> stream)
    : device_(device), stream_(std::move(stream)), deadline_(steady_clock::now() + patience) {}

lingering::~lingering() {
  hurry();
  device_.forget(stream_->socket());
  device_.forget_deadline(*this);
}

void lingering::hurry() {
  auto closed = device_.closed_at();
  while (closed && !over()) {
    auto left = *closed + patience_of_closing - steady_clock::now();
    short events = said_all_ ? POLLIN : POLLIN | POLLOUT;
    pollfd waiting{stream_->socket(), events, 0};
    auto limit = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    if (limit <= 0 || ::poll(&waiting, 1, static_cast<int>(limit)) <= 0)
      return;
  }
}

bool lingering::over() {
  if (!said_all_ && stream_->flush()) {
    said_all_ = true;
    ::shutdown(stream_->socket(), SHUT_WR);
  }
  std::array<std::byte, 16 * 1024> unwanted;
  while (stream_->read(unwanted) > 0)
    ;
  return stream_->ended();
}

void lingering::on_ready(int fd, uint32_t events) {
  if (over())
    device_.release(*this);
  else if (said_all_ && (events & EPOLLOUT) != 0)
    device_.change(fd, EPOLLIN, *this);
}

} // namespace troupe::transport::soft
