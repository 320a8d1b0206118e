// A stream through shared memory.
#pragma once

#include "soft/doorbell.hpp"
#include "soft/link_memory.hpp"
#include "soft/stream.hpp"

namespace troupe::transport::soft {

class ring_stream final : public stream {
public:
  ring_stream(std::shared_ptr<link_memory> memory, remote_doorbell peer);

  /// Tells the peer that nothing follows.
  ~ring_stream() override;

  size_t write(byte_view head, byte_view body) override;
  bool flush() override;
  size_t read(byte_span into) override;
  void release() override;
  bool ended() const override { return ended_; }
  void wait_for_peer() override;
  void offer_receives(uint32_t total) override;
  uint32_t offered_receives() override;

  /// The peer's process is gone: what it published is all there will be.
  void peer_is_gone() noexcept { peer_gone_ = true; }

  /// Whether the peer has said that it is done with this connection.
  bool peer_closed() const noexcept {
    return peer_gone_ || memory_->there().closed.load(std::memory_order_acquire) != 0;
  }

private:
  // Rings the peer if it waits for news of this side.
  void ring_if_waiting();

  std::shared_ptr<link_memory> memory_;
  remote_doorbell peer_;
  ring_writer out_;
  ring_reader in_;
  bool peer_gone_ = false;
  bool ended_ = false;
};

} // namespace troupe::transport::soft
