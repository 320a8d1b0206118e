// What threads want to send over one connection, until the loop takes it. Internal.
#pragma once

#include "troupe/transport/channel.hpp"

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace troupe::transport {

/// Many threads put, the loop takes. The order of messages is that of the calls of `put`.
class outbox {
public:
  using bytes = std::vector<char>;

  /// `on_first` is called when the box is no longer empty, by the thread that filled it.
  explicit outbox(std::function<void()> on_first) : on_first_(std::move(on_first)) {}

  outbox(const outbox&) = delete;
  outbox& operator=(const outbox&) = delete;

  /// Messages that follow each other, or one with attachments.
  struct segment {
    outbox::bytes bytes;
    std::vector<attachment> attached;
  };

  /// Adds a message: copies a short one and leaves `message` as it is, takes a long one, or one
  /// with attachments, and leaves it empty. Any thread. @returns false when the connection is gone.
  bool put(bytes& message, std::vector<attachment> attached = {});

  /// Appends what is there to `out`, oldest first. The loop.
  void take_all(std::vector<segment>& out);

  /// Gives back an empty buffer whose memory is warm. The loop.
  void recycle(bytes empty);

  /// From now on `put` refuses. The loop.
  void close();

private:
  std::function<void()> on_first_;
  std::mutex mutex_;
  std::vector<segment> segments_;
  bytes spare_;
  bool closed_ = false;
};

} // namespace troupe::transport
