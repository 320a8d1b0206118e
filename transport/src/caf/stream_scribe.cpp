#include "caf/stream_scribe.hpp"

#include "caf/multiplexer.hpp"
#include "troupe/transport/log.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace troupe::transport {

stream_scribe::stream_scribe(multiplexer& owner, caf::io::connection_handle handle)
    : scribe(handle), owner_(owner) {}

void stream_scribe::attach(std::unique_ptr<channel> stream) {
  stream_ = std::move(stream);
  stream_->read_with(*this);
}

void stream_scribe::transmit() {
  if (stream_ && !write_buffer_.empty())
    stream_->send(write_buffer_);
}

void stream_scribe::drop() {
  stream_.reset();
  detach(&owner_, true);
}

// -- caf::io::scribe
// ------------------------------------------------------------------------------------

void stream_scribe::configure_read(caf::io::receive_policy::config config) {
  // Only CAF's own BASP broker has such scribes, and it asks for exact sizes. "At least" is met by
  // exactly as many; "at most" by one byte at a time.
  auto at_most = config.first == caf::io::receive_policy_flag::at_most;
  read_bytes_ = at_most ? 1 : std::max<size_t>(config.second, 1);
  if (!std::exchange(active_, true))
    resume_later();
}

void stream_scribe::ack_writes(bool) {
  // BASP never asks for write receipts, and brokers of applications are plain TCP.
}

void stream_scribe::flush() {
  if (!write_buffer_.empty())
    owner_.transmit_later(*this);
}

void stream_scribe::graceful_shutdown() {
  caf::intrusive_ptr<stream_scribe> alive{this};
  if (stream_ && !std::exchange(closing_, true)) {
    transmit();
    peer_ = stream_->peer();
    stream_->close([alive] { alive->owner_.release(*alive); });
  }
  detach(&owner_, false);
}

std::string stream_scribe::addr() const {
  return stream_ && !closing_ ? stream_->peer().host : peer_.host;
}

uint16_t stream_scribe::port() const {
  return stream_ && !closing_ ? stream_->peer().port : peer_.port;
}

void stream_scribe::add_to_loop() {
  if (!std::exchange(active_, true))
    resume_later();
}

/// The broker is in the middle of a handler; what has arrived must not call it again from within.
void stream_scribe::resume_later() {
  owner_.loop().after({}, [self = caf::intrusive_ptr<stream_scribe>{this}] {
    if (self->stream_ && !self->closing_)
      self->stream_->resume();
  });
}

void stream_scribe::remove_from_loop() {
  active_ = false;
}

// -- channel::reader
// ------------------------------------------------------------------------------------

byte_span stream_scribe::next_buffer() {
  if (!active_ || read_bytes_ == 0)
    return {};
  try {
    read_buffer_.resize(read_bytes_);
  } catch (const std::bad_alloc&) {
    log_for("transport")
        ->error("no memory for a message of {} bytes from {}:{}: connection closed", read_bytes_,
                addr(), port());
    // Not from within the channel's delivery.
    owner_.loop().after({}, [self = caf::intrusive_ptr<stream_scribe>{this}] {
      self->on_end({errc::limit_too_low, "no memory for an incoming message"});
    });
    active_ = false;
    return {};
  }
  return std::as_writable_bytes(std::span{read_buffer_});
}

void stream_scribe::on_filled() {
  if (!consume(&owner_, read_buffer_.data(), read_buffer_.size()))
    active_ = false;
}

void stream_scribe::on_end(const error& reason) {
  caf::intrusive_ptr<stream_scribe> alive{this};
  if (std::exchange(closing_, true))
    return;
  if (reason.code() != errc::disconnected)
    log_for("transport")->warn("{}", reason.text());
  owner_.release(*this);
  detach(&owner_, true);
}

} // namespace troupe::transport
