#include "caf/stream_scribe.hpp"

#include "caf/multiplexer.hpp"
#include "troupe/transport/log.hpp"

#include <algorithm>
#include <new>
#include <span>
#include <utility>

namespace troupe::transport {

namespace {

// Attachments of so many bytes are worth a look at whether the loop should go on meanwhile.
constexpr uint64_t long_unpacking = 1024 * 1024;

} // namespace

stream_scribe::stream_scribe(multiplexer& owner, caf::io::connection_handle handle)
    : scribe(handle), owner_(owner),
      box_(std::make_shared<outbox>([&owner, handle] { owner.transmit_soon(handle); })) {}

void stream_scribe::attach(std::unique_ptr<channel> stream) {
  stream_ = std::move(stream);
  stream_->read_with(*this);
}

void stream_scribe::transmit() {
  if (!stream_)
    return;
  collect();
  for (auto& each : outgoing_) {
    stream_->send(each.bytes, std::move(each.attached)); // leaves a warm buffer
    box_->recycle(std::move(each.bytes));
  }
  outgoing_.clear();
  if (!write_buffer_.empty())
    stream_->send(write_buffer_);
}

/// Takes what other threads have sent. What the broker has written before came before it.
void stream_scribe::collect() {
  if (!write_buffer_.empty()) {
    outgoing_.push_back({std::move(write_buffer_), {}});
    write_buffer_ = {};
  }
  box_->take_all(outgoing_);
}

std::vector<char>& stream_scribe::wr_buf() {
  collect();
  return write_buffer_;
}

void stream_scribe::drop() {
  box_->close();
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
  if (!write_buffer_.empty() || !outgoing_.empty())
    owner_.transmit_later(*this);
}

void stream_scribe::graceful_shutdown() {
  caf::intrusive_ptr<stream_scribe> alive{this};
  if (stream_ && !std::exchange(closing_, true)) {
    transmit();
    box_->close();
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

/// Whether a message needs nothing of the broker. Before the handshake everything does.
bool stream_scribe::passes_broker(const basp::header& what) {
  if (what.operation != basp::message_type::direct_message || !caf::io::basp::valid(what))
    return false;
  if (!peer_node_)
    peer_node_ = broker().peer_of(hdl());
  return static_cast<bool>(peer_node_);
}

node_broker& stream_scribe::broker() {
  return *static_cast<node_broker*>(parent());
}

/// @returns whether more may be delivered.
bool stream_scribe::deliver(const basp::header& what, byte_view payload) {
  if ((what.flags & basp::has_layout) != 0)
    return deliver_attached(what, payload);
  if (auto message = broker().unpack(owner_, peer_node_, what, payload, {}))
    broker().hand_over(owner_, std::move(*message));
  return active_ && !closing_;
}

/// Makes the containers that the attachments belong in, and has them read. The stream waits for
/// them.
bool stream_scribe::deliver_attached(const basp::header& what, byte_view payload) {
  auto layout = basp::decode_layout(payload);
  auto lengths = layout ? stream_->attachments(layout->holes.size()) : std::nullopt;
  auto agrees = lengths && std::equal(lengths->begin(), lengths->end(), layout->holes.begin(),
                                      [](uint64_t length, const hole_place& each) {
                                        return length == each.length;
                                      });
  stream_->await_fetch();
  if (!agrees) {
    // Not from within the channel's delivery.
    owner_.loop().after({}, [self = caf::intrusive_ptr<stream_scribe>{this}] {
      self->on_end({errc::protocol_violation, "a message whose long parts were not announced"});
    });
    return false;
  }
  uint64_t total = 0;
  for (auto length : *lengths)
    total += length;
  if (total < long_unpacking) {
    fetch(broker().unpack(owner_, peer_node_, what, layout->rest, layout->holes), lengths->size());
    return false;
  }
  // Touching so much memory takes its time: the loop may go on without this thread.
  auto rest = reinterpret_cast<const char*>(layout->rest.data());
  owner_.run_aside(
      [self = caf::intrusive_ptr<stream_scribe>{this}, what, holes = std::move(layout->holes),
       bytes = std::vector<char>{rest, rest + layout->rest.size()},
       keeper = caf::strong_actor_ptr{parent()->ctrl()}](caf::execution_unit& context) {
        auto broker = static_cast<node_broker*>(keeper->get());
        auto message = std::make_shared<std::optional<node_broker::arrival>>(broker->unpack(
            context, self->peer_node_, what, std::as_bytes(std::span{bytes}), holes));
        self->owner_.post(
            [self, message, count = holes.size()] { self->fetch(std::move(*message), count); });
      });
  return false;
}

/// Has the attachments of a message read to their places, or skips them when there is no message.
void stream_scribe::fetch(std::optional<node_broker::arrival> message, size_t attachments) {
  if (!stream_ || closing_)
    return;
  if (!message)
    return stream_->skip(attachments);
  auto shared = std::make_shared<node_broker::arrival>(std::move(*message));
  stream_->fetch(shared->places, shared, [self = caf::intrusive_ptr<stream_scribe>{this}, shared] {
    if (!self->closing_)
      self->broker().hand_over(self->owner_, std::move(*shared));
  });
}

/// Delivers the whole messages at the beginning of `bytes` from where they lie.
size_t stream_scribe::on_bytes(byte_view bytes) {
  size_t used = 0;
  while (active_ && !closing_ && at_header_ && !passing_ && read_bytes_ == basp::header_size &&
         bytes.size() - used >= basp::header_size) {
    auto what = basp::decode(bytes.subspan(used));
    auto rest = bytes.subspan(used + basp::header_size);
    if (what.payload_len > rest.size() || !passes_broker(what))
      break;
    used += basp::header_size + what.payload_len;
    if (!deliver(what, rest.first(what.payload_len)))
      break;
  }
  if (used > 0 && owner_.times_out())
    broker().heard_from(hdl());
  return used;
}

byte_span stream_scribe::next_buffer() {
  if (!active_ || read_bytes_ == 0)
    return {};
  auto size = passing_ ? passing_->payload_len : read_bytes_;
  try {
    read_buffer_.resize(size);
  } catch (const std::bad_alloc&) {
    log_for("transport")
        ->error("no memory for a message of {} bytes from {}:{}: connection closed", size, addr(),
                port());
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
  auto bytes = std::as_bytes(std::span{read_buffer_});
  if (passing_) {
    deliver(*std::exchange(passing_, std::nullopt), bytes);
    if (owner_.times_out())
      broker().heard_from(hdl());
    return;
  }
  if (std::exchange(at_header_, true) && read_buffer_.size() == basp::header_size) {
    auto what = basp::decode(bytes);
    if (passes_broker(what)) {
      passing_ = what;
      return;
    }
    at_header_ = what.payload_len == 0;
  }
  if (!consume(&owner_, read_buffer_.data(), read_buffer_.size()))
    active_ = false;
}

void stream_scribe::on_end(const error& reason) {
  caf::intrusive_ptr<stream_scribe> alive{this};
  if (std::exchange(closing_, true))
    return;
  box_->close();
  if (reason.code() != errc::disconnected)
    log_for("transport")->warn("{}", reason.text());
  owner_.release(*this);
  detach(&owner_, true);
}

} // namespace troupe::transport
