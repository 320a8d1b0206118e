#include "soft/pair.hpp"

#include "soft/lingering.hpp"
#include "soft/socket_owner.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::transport::soft {

pair::pair(std::shared_ptr<context> device, const queue_pair_config& config)
    : device_(std::move(device)), completions_(static_cast<completions*>(config.completions)),
      one_sided_(config.one_sided), work_(config.send_depth), receives_(config.receive_depth) {}

pair::~pair() {
  if (connecting_)
    device_->release(*std::exchange(connecting_, nullptr));
  // Nothing of this is reported: its completions and events go with it.
  phase_ = phase::failed;
  close_stream(errc::disconnected, 0);
  completions_->remove(*this, bit_);
  device_->drop_events_of(this);
}

// -- set-up ---------------------------------------------------------------------------------------

std::optional<uint32_t> pair::shared_bit() {
  if (!bit_)
    bit_ = completions_->add_shared(*this);
  return bit_;
}

void pair::establish(const endpoint& peer, descriptor socket, byte_view private_data) {
  tcp_ = std::make_unique<tcp_stream>(std::move(socket));
  stream_ = tcp_.get();
  path_ = "tcp";
  if (auto added = completions_->add_socket(*this, tcp_->socket()); !added) {
    stream_ = nullptr;
    tcp_.reset();
    fail_connect(added.error(), {});
    return;
  }
  liveness_ = std::make_unique<liveness>(*device_, tcp_->socket(), [this] {
    fail_pair(errc::unreachable,
              "the host of " + to_string(peer_) + " acknowledges nothing any more");
  });
  established(peer, private_data);
}

void pair::establish(const endpoint& peer, shared_link::parts link, remote_doorbell bell,
                     byte_view private_data) {
  ring_ = std::make_unique<ring_stream>(link.memory, std::move(bell));
  stream_ = ring_.get();
  path_ = "shared memory";
  link_ = std::make_unique<shared_link>(device_, std::move(link), [this] {
    ring_->peer_is_gone();
    completions_->run_later(*this);
  });
  established(peer, private_data);
}

void pair::established(const endpoint& peer, byte_view private_data) {
  connecting_ = nullptr;
  peer_ = peer;
  phase_ = phase::established;
  stream_->offer_receives(posted_);
  connection_event event;
  event.what = connection_event::kind::established;
  event.pair = this;
  event.private_data.assign(private_data.begin(), private_data.end());
  device_->push(std::move(event));
  // The peer learns at once of the receives that were posted so far.
  transmit();
  completions_->run_later(*this);
}

void pair::fail_connect(error reason, byte_view private_data) {
  connecting_ = nullptr;
  phase_ = phase::failed;
  flush_work();
  connection_event event;
  event.what = connection_event::kind::failed;
  event.pair = this;
  event.reason = std::move(reason);
  event.private_data.assign(private_data.begin(), private_data.end());
  device_->push(std::move(event));
}

bool pair::same_user() const {
  // Shared memory is offered to processes of this user only.
  return link_ != nullptr || (tcp_ && peer_is_same_user(tcp_->socket()));
}

// -- posting --------------------------------------------------------------------------------------

namespace {

status check_slice(const local_slice& slice, const void* home) {
  auto size = slice.region ? slice.region->size() : 0;
  if (slice.offset > size || slice.length > size - slice.offset)
    return fail(errc::invalid_argument, std::to_string(slice.length) + " bytes from offset " +
                                            std::to_string(slice.offset) +
                                            " do not lie in a region of " + std::to_string(size) +
                                            " bytes");
  if (slice.region && slice.region->home() != home)
    return fail(errc::invalid_argument, "the memory of a slice is registered with another device");
  return {};
}

std::byte* start_of(const local_slice& slice) {
  return slice.region ? slice.region->data() + slice.offset : nullptr;
}

} // namespace

status pair::post_receive(uint64_t id, local_slice buffer) {
  if (auto sound = check_slice(buffer, &device_->regions()); !sound)
    return sound;
  if (receives_.size() + receives_held_ + (receiving_ ? 1 : 0) >= receives_.capacity())
    return fail(errc::no_resources, "the receive queue is full");
  receive_entry entry{id, {start_of(buffer), buffer.length}};
  if (phase_ == phase::failed) {
    report_receive(entry, errc::flushed, 0);
    return {};
  }
  receives_.push_back(entry);
  ++posted_;
  if (phase_ != phase::established)
    return {};
  stream_->offer_receives(posted_);
  // Over TCP the peer is told by a frame, at the next poll, when others may go with it.
  if (owes_word())
    completions_->run_later(*this);
  return {};
}

status pair::check(const work_request& request) const {
  switch (request.op) {
  case opcode::send:
  case opcode::write:
  case opcode::write_notify:
  case opcode::read:
  case opcode::fetch_add:
  case opcode::compare_swap:
    break;
  default:
    return fail(errc::invalid_argument, "cannot post a work request of this kind");
  }
  if (auto sound = check_slice(request.local, &device_->regions()); !sound)
    return sound;
  if (request.op == opcode::read && request.local.length > 0 &&
      !allows(request.local.region->rights(), access::read_sink))
    return fail(errc::invalid_argument,
                "a read goes into memory that was registered with access::read_sink");
  auto length = request.local.length;
  if (length > limits_of_soft.max_message)
    return fail(errc::invalid_argument, "a message of " + std::to_string(length) +
                                            " bytes is above the limit of " +
                                            std::to_string(limits_of_soft.max_message));
  if (request.inlined && length > limits_of_soft.max_inline)
    return fail(errc::invalid_argument, "cannot inline " + std::to_string(length) +
                                            " bytes: the limit is " +
                                            std::to_string(limits_of_soft.max_inline));
  bool atomic = request.op == opcode::fetch_add || request.op == opcode::compare_swap;
  if (atomic && length != sizeof(uint64_t))
    return fail(errc::invalid_argument, "an atomic operation needs 8 local bytes");
  return {};
}

status pair::post(std::span<const work_request> batch) {
  if (phase_ == phase::connecting)
    return fail(errc::invalid_argument, "the connection is not established yet");
  if (!one_sided_)
    return fail(errc::invalid_argument, "this connection serves set-up only");
  for (const auto& request : batch)
    if (auto checked = check(request); !checked)
      return checked;
  if (batch.size() > work_.capacity() - std::min(work_.capacity(), work_.size() + work_held_))
    return fail(errc::no_resources, "the send queue is full");
  auto first_new = work_.size();
  for (const auto& request : batch) {
    work_entry entry;
    entry.request = request;
    entry.data = start_of(request.local);
    if (phase_ == phase::failed)
      report(entry, errc::flushed);
    else
      work_.push_back(std::move(entry));
  }
  if (phase_ == phase::failed)
    return {};
  auto before = work_.size();
  if (transmit())
    completions_->run_later(*this);
  // What could not leave at once must not depend on the caller's bytes any more.
  auto gone = before - work_.size();
  for (auto i = std::max(first_new, gone) - gone; i < work_.size(); ++i) {
    auto& entry = work_[i];
    bool source = entry.is(opcode::send) || entry.is_write();
    if (!entry.request.inlined || !source || entry.done || entry.length() == 0)
      continue;
    entry.copy.assign(entry.data, entry.data + entry.length());
    entry.data = entry.copy.data();
    if (out_.active && out_.from == outgoing_frame::origin::work && i == next_)
      out_.body = entry.data + entry.progress;
  }
  return {};
}

// -- completing -----------------------------------------------------------------------------------

void pair::complete_front() {
  while (!work_.empty() && work_.front().done) {
    auto entry = work_.pop_front();
    if (next_ > 0)
      --next_;
    if (entry.request.signaled || entry.status != errc::none)
      report(entry, entry.status);
  }
}

void pair::report(const work_entry& entry, errc status) {
  completion done;
  done.id = entry.request.id;
  done.pair = this;
  done.op = entry.request.op;
  done.status = status;
  ++work_held_;
  completions_->push(done);
}

void pair::report_receive(const receive_entry& into, errc status, size_t length) {
  completion done;
  done.id = into.id;
  done.pair = this;
  done.op = opcode::receive;
  done.status = status;
  done.length = length;
  ++receives_held_;
  completions_->push(done);
}

void pair::taken(opcode op) noexcept {
  --(op == opcode::receive ? receives_held_ : work_held_);
}

// -- moving data ----------------------------------------------------------------------------------

void pair::progress() {
  if (phase_ != phase::established)
    return;
  bool more = receive_frames();
  if (phase_ == phase::established)
    more |= transmit();
  if (more && phase_ == phase::established)
    completions_->run_later(*this);
}

// -- the end --------------------------------------------------------------------------------------

void pair::disconnect() {
  if (phase_ == phase::connecting) {
    if (connecting_)
      device_->release(*std::exchange(connecting_, nullptr));
    fail_connect(error{errc::disconnected, "disconnected before the connection was established"},
                 {});
    return;
  }
  fail_pair(errc::disconnected, "the connection to " + to_string(peer_) + " was closed here");
}

void pair::fail_pair(errc reason, const std::string& text, uint32_t failed_sequence) {
  if (phase_ != phase::established)
    return;
  phase_ = phase::failed;
  close_stream(reason, failed_sequence);
  flush_work();
  connection_event event;
  event.what = connection_event::kind::disconnected;
  event.pair = this;
  event.reason = error{reason, text};
  device_->push(std::move(event));
}

void pair::close_stream(errc reason, uint32_t failed_sequence) {
  if (!stream_)
    return;
  frame_header header;
  header.kind = frame_kind::bye;
  header.acknowledged = served_acknowledged_;
  header.receives = posted_;
  bye_extension bye{static_cast<uint32_t>(reason), failed_sequence};
  std::array<std::byte, sizeof header + sizeof bye> last_words;
  std::memcpy(last_words.data(), &header, sizeof header);
  std::memcpy(last_words.data() + sizeof header, &bye, sizeof bye);
  // They can only be understood after a whole frame. The rest of one that answers a read may not
  // be ours to send any more; then the end of the stream has to say it all.
  byte_view head{out_.head.data() + out_.head_sent, out_.head_size - out_.head_sent};
  byte_view body;
  if (out_.body)
    body = {out_.body + out_.body_sent, out_.body_size - out_.body_sent};
  bool can_say_it = !out_.active || out_.body_size == 0 || out_.body;
  out_.active = false;
  if (tcp_) {
    liveness_.reset();
    if (can_say_it) {
      tcp_->append(head);
      tcp_->append(body);
      tcp_->append(last_words);
    }
    completions_->remove_socket(tcp_->socket(), output_wanted_);
    lingering::begin(*device_, std::move(tcp_));
  } else {
    if (can_say_it && ring_->write(head, body) == head.size() + body.size())
      ring_->write(last_words, {});
    ring_.reset();
    link_.reset();
  }
  stream_ = nullptr;
}

void pair::flush_work() {
  for (; !work_.empty(); work_.pop_front()) {
    const auto& entry = work_.front();
    report(entry, entry.status != errc::none ? entry.status : errc::flushed);
  }
  next_ = 0;
  unanswered_ = 0;
  reads_unanswered_ = 0;
  answers_.clear();
  if (receiving_)
    report_receive(*receiving_, errc::flushed, 0);
  receiving_.reset();
  for (; !receives_.empty(); receives_.pop_front())
    report_receive(receives_.front(), errc::flushed, 0);
}

} // namespace troupe::transport::soft
