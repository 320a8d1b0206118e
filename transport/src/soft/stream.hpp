// The two-way stream of bytes under a queue pair. Never blocks.
#pragma once

#include "troupe/transport/bytes.hpp"

#include <cstdint>

namespace troupe::transport::soft {

class stream {
public:
  virtual ~stream() = default;

  /// Takes as much of `head`, then of `body`, as there is room for. Either may be empty.
  /// @returns how many bytes that were; less than offered means: no more room now.
  virtual size_t write(byte_view head, byte_view body) = 0;

  /// Sends everything taken so far on its way, as far as it goes.
  /// @returns whether all of it went.
  virtual bool flush() = 0;

  /// Gives up to `into.size()` bytes that came.
  /// @returns how many; 0 when there are none now or the stream ended.
  virtual size_t read(byte_span into) = 0;

  /// Lets the peer use the room of what was read.
  virtual void release() = 0;

  /// Whether the peer has closed or died and everything that it sent was read. Known at the latest
  /// after a read that gave nothing.
  virtual bool ended() const = 0;

  /// Whether it ended because nothing was heard of the peer: it may still live.
  virtual bool lost() const { return false; }

  /// Says that the writer waits for room or for posted receives: from now on the peer wakes it once
  /// there is news. The caller must look once more after this.
  virtual void wait_for_peer() = 0;

  /// Tells the peer how many receives were posted so far, if this stream has a way beside frames.
  virtual void offer_receives(uint32_t total) = 0;

  /// The peer's number of posted receives, likewise; 0 when this stream has no such way.
  virtual uint32_t offered_receives() = 0;
};

} // namespace troupe::transport::soft
