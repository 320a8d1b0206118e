#include "soft/lingering.hpp"

#include <array>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace troupe::transport::soft {

namespace {

constexpr std::chrono::seconds patience{5};

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
  device_.forget(stream_->socket());
  device_.forget_deadline(*this);
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
