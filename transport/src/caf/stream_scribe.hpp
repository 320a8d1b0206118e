// A CAF connection carried by a channel. Internal.
#pragma once

#include "caf/basp_header.hpp"
#include "caf/caf_version.hpp"
#include "caf/node_broker.hpp"
#include "caf/outbox.hpp"
#include "troupe/transport/channel.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::transport {

class multiplexer;

/// Only CAF's BASP broker has such scribes. Messages from actor to actor pass the broker by, both
/// ways: they come in through the outbox and are delivered here. Everything else is read and
/// written by the broker. Loop thread only, except for construction, `box`, and the release of a
/// reference.
class stream_scribe final : public caf::io::scribe, public channel::reader {
public:
  stream_scribe(multiplexer& owner, caf::io::connection_handle handle);

  /// Gives the scribe its connection.
  void attach(std::unique_ptr<channel> stream);

  /// Where other threads put what they want to send.
  const std::shared_ptr<outbox>& box() const noexcept { return box_; }

  /// Hands what is in the outbox and what the broker has written to the channel.
  void transmit();

  /// Drops the connection at once, for a loop that ends.
  void drop();

  // -- caf::io::scribe
  // --------------------------------------------------------------------------------
  void configure_read(caf::io::receive_policy::config config) override;
  void ack_writes(bool enable) override;
  std::vector<char>& wr_buf() override;
  std::vector<char>& rd_buf() override { return read_buffer_; }
  void flush() override;
  void graceful_shutdown() override;
  std::string addr() const override;
  uint16_t port() const override;
  void add_to_loop() override;
  void remove_from_loop() override;

  // -- channel::reader
  // --------------------------------------------------------------------------------
  size_t on_bytes(byte_view bytes) override;
  byte_span next_buffer() override;
  void on_filled() override;
  void on_end(const error& reason) override;

private:
  void resume_later();
  void collect();
  bool passes_broker(const basp::header& what);
  bool deliver(const basp::header& what, byte_view payload);
  bool deliver_attached(const basp::header& what, byte_view payload);
  void fetch(std::optional<node_broker::arrival> message, size_t attachments);
  node_broker& broker();

  multiplexer& owner_;
  std::shared_ptr<outbox> box_;
  std::vector<outbox::segment> outgoing_; // from the outbox, before what is in write_buffer_
  std::vector<char> write_buffer_;
  std::vector<char> read_buffer_;
  std::unique_ptr<channel> stream_;
  endpoint peer_;
  size_t read_bytes_ = 0; // what the broker wants next; 0 before it said so
  bool at_header_ = true; // what comes next is a BASP header
  std::optional<basp::header>
      passing_; // of a message that passes the broker by, whose payload is being read
  caf::node_id peer_node_;
  bool active_ = false;
  bool closing_ = false;
};

} // namespace troupe::transport
