// Notices that the host of a TCP peer is gone while bytes for it are under way. Keepalive tells of
// silent connections only, and otherwise the system goes on trying for a quarter of an hour.
// TCP_USER_TIMEOUT would be shorter, but it also ends connections to a peer that is only stopped,
// and so takes nothing more while its host goes on acknowledging.
#pragma once

#include "soft/context.hpp"

#include <functional>

namespace troupe::transport::soft {

class liveness final : public watcher {
public:
  /// Calls `lost` when `socket` has had bytes under way for half a minute or so and no
  /// acknowledgement came. Both must outlive this.
  liveness(context& device, int socket, std::function<void()> lost);
  ~liveness() override;

  void on_ready(int, uint32_t) override {}
  std::optional<steady_clock::time_point> deadline() const override { return next_look_; }
  void on_deadline() override;

private:
  context& device_;
  int socket_;
  std::function<void()> lost_;
  steady_clock::time_point next_look_;
  int silent_looks_ = 0; // in a row
};

} // namespace troupe::transport::soft
