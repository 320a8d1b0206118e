// What the device's epoll reports to.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace troupe::transport::soft {

using steady_clock = std::chrono::steady_clock;

/// Waits for one or two descriptors, and perhaps for a moment. Registered with a `context`, which
/// it must outlive. Either call may destroy the object.
class watcher {
public:
  virtual ~watcher() = default;

  /// `events` as epoll gives them, of `descriptor`.
  virtual void on_ready(int descriptor, uint32_t events) = 0;

  /// When `on_deadline` is due, if ever.
  virtual std::optional<steady_clock::time_point> deadline() const { return std::nullopt; }
  virtual void on_deadline() {}
};

} // namespace troupe::transport::soft
