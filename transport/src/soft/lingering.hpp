// The last moments of a TCP connection: what was sent last must reach the peer, and closing while
// the peer's bytes are unread would cut that off.
#pragma once

#include "soft/context.hpp"
#include "soft/tcp_stream.hpp"

namespace troupe::transport::soft {

class lingering final : public watcher {
public:
  /// Sends what `stream` still holds, says that nothing follows, and closes once the peer has
  /// done so too, at the latest after a few seconds. A device that is closed before waits for that,
  /// a second at most.
  static void begin(context& device, std::unique_ptr<tcp_stream> stream);

  lingering(context& device, std::unique_ptr<tcp_stream> stream);
  ~lingering() override;

  void on_ready(int descriptor, uint32_t events) override;
  std::optional<steady_clock::time_point> deadline() const override { return deadline_; }
  void on_deadline() override { device_.release(*this); }

private:
  // @returns whether the connection may be closed now.
  bool over();
  // Waits, a little, until that is so.
  void hurry();

  context& device_;
  std::unique_ptr<tcp_stream> stream_;
  steady_clock::time_point deadline_;
  bool said_all_ = false;
};

} // namespace troupe::transport::soft
