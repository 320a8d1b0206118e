// A CAF connection carried by a channel. Internal.
#pragma once

#include "caf/caf_version.hpp"
#include "troupe/transport/channel.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe::transport {

class multiplexer;

/// Loop thread only, except for construction and the release of a reference.
class stream_scribe final : public caf::io::scribe, public channel::reader {
public:
  stream_scribe(multiplexer& owner, caf::io::connection_handle handle);

  /// Gives the scribe its connection.
  void attach(std::unique_ptr<channel> stream);

  /// Hands the write buffer to the channel.
  void transmit();

  /// Drops the connection at once, for a loop that ends.
  void drop();

  // -- caf::io::scribe
  // --------------------------------------------------------------------------------
  void configure_read(caf::io::receive_policy::config config) override;
  void ack_writes(bool enable) override;
  std::vector<char>& wr_buf() override { return write_buffer_; }
  std::vector<char>& rd_buf() override { return read_buffer_; }
  void flush() override;
  void graceful_shutdown() override;
  std::string addr() const override;
  uint16_t port() const override;
  void add_to_loop() override;
  void remove_from_loop() override;

  // -- channel::reader
  // --------------------------------------------------------------------------------
  byte_span next_buffer() override;
  void on_filled() override;
  void on_end(const error& reason) override;

private:
  void resume_later();

  multiplexer& owner_;
  std::vector<char> write_buffer_;
  std::vector<char> read_buffer_;
  std::unique_ptr<channel> stream_;
  endpoint peer_;
  size_t read_bytes_ = 0; // what the broker wants next; 0 before it said so
  bool active_ = false;
  bool closing_ = false;
};

} // namespace troupe::transport
