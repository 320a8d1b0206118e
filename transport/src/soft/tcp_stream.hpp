// A stream over a TCP connection: small pieces are gathered, large ones go from and to their place.
#pragma once

#include "soft/descriptor.hpp"
#include "soft/stream.hpp"

#include <vector>

namespace troupe::transport::soft {

class tcp_stream final : public stream {
public:
  /// `socket` is connected and non-blocking.
  explicit tcp_stream(descriptor socket);

  int socket() const noexcept { return socket_.get(); }

  size_t write(byte_view head, byte_view body) override;
  bool flush() override;
  size_t read(byte_span into) override;
  void release() override {}
  bool ended() const override { return ended_; }
  bool lost() const override { return lost_; }
  void wait_for_peer() override {}
  void offer_receives(uint32_t) override {}
  uint32_t offered_receives() override { return 0; }

  /// Takes all of `bytes`, whatever room there is: for the last words before closing.
  void append(byte_view bytes);

  /// Whether bytes wait for the socket to take them.
  bool output_waits() const noexcept { return !broken_ && out_start_ < out_.size(); }

  /// Whether bytes were received that `read` has not given yet.
  bool input_waits() const noexcept { return in_start_ < in_end_; }

private:
  // @returns how many bytes the socket took.
  size_t send_now(byte_view head, byte_view body);
  // Receives into `into`, and what comes after that into `in_`, up to `ahead` bytes.
  // @returns how many bytes of `into` came.
  size_t receive_now(byte_span into, size_t ahead);

  descriptor socket_;
  std::vector<std::byte> out_; // from out_start_ on: taken, not yet sent
  size_t out_start_ = 0;
  std::vector<std::byte> in_; // from in_start_ to in_end_: received, not yet read
  size_t in_start_ = 0;
  size_t in_end_ = 0;
  bool broken_ = false; // sending has failed; reading goes on until the end
  bool ended_ = false;
  bool lost_ = false; // the system has given the peer up
};

} // namespace troupe::transport::soft
