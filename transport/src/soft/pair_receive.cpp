// The receiving half of a pair. Nothing that comes from the peer is believed unchecked.
#include "soft/pair.hpp"

#include "troupe/transport/log.hpp"

#include <cstring>

namespace troupe::transport::soft {

namespace {

constexpr size_t turn_budget = 1024 * 1024;
// What handling one frame costs, in bytes of the budget.
constexpr size_t frame_cost = 256;

constexpr bool known(frame_kind kind) {
  return kind >= frame_kind::send && kind <= frame_kind::bye;
}

constexpr bool may_have_payload(frame_kind kind) {
  return kind == frame_kind::send || kind == frame_kind::write ||
         kind == frame_kind::read_response || kind == frame_kind::atomic_response;
}

} // namespace

// @returns whether there is more to receive without waiting for the peer.
bool pair::receive_frames() {
  size_t used = 0;
  while (phase_ == phase::established) {
    if (used >= turn_budget) {
      stream_->release();
      return true;
    }
    if (in_.left > 0) {
      auto count = take_payload();
      if (phase_ != phase::established || count == 0)
        break;
      used += count;
      in_.left -= static_cast<uint32_t>(count);
      if (in_.left == 0)
        end_part();
      continue;
    }
    if (!take_head())
      break;
    used += frame_cost;
    in_.left = in_.header.length;
    begin_part();
    if (phase_ == phase::established && in_.left == 0)
      end_part();
  }
  if (phase_ != phase::established)
    return false;
  stream_->release();
  complete_front();
  if (!stream_->ended())
    return false;
  if (stream_->lost())
    fail_pair(errc::unreachable, "nothing is heard of " + to_string(peer_) + " any more");
  else
    fail_pair(errc::disconnected,
              to_string(peer_) + " has closed the connection, or its process has died");
  return false;
}

// Gathers a header and its extension.
// @returns whether they are complete.
bool pair::take_head() {
  auto gather = [this](size_t need) {
    while (in_.have < need) {
      auto count = stream_->read({in_.head.data() + in_.have, need - in_.have});
      if (count == 0)
        return false;
      in_.have += count;
    }
    return true;
  };
  if (!gather(sizeof(frame_header)))
    return false;
  std::memcpy(&in_.header, in_.head.data(), sizeof(frame_header));
  const auto& header = in_.header;
  if (!known(header.kind) || header.unused != 0 || header.length > largest_part ||
      (header.length > 0 && !may_have_payload(header.kind))) {
    violation("a malformed frame");
    return false;
  }
  if (!gather(sizeof(frame_header) + extension_size(header.kind, header.flags)))
    return false;
  in_.have = 0;
  return true;
}

template <class Extension>
Extension pair::extension() const {
  Extension content;
  std::memcpy(&content, in_.head.data() + sizeof(frame_header), sizeof content);
  return content;
}

void pair::begin_part() {
  if (!take_acknowledgement(in_.header.acknowledged)) {
    violation("an acknowledgement of what was not sent");
    return;
  }
  if (!link_)
    peer_receives_ = in_.header.receives;
  if (!one_sided_ && in_.header.kind != frame_kind::acknowledge &&
      in_.header.kind != frame_kind::bye) {
    violation("data on a connection that serves set-up only");
    return;
  }
  switch (in_.header.kind) {
  case frame_kind::send:
    begin_send();
    break;
  case frame_kind::write:
    begin_write();
    break;
  case frame_kind::notify:
    begin_notify();
    break;
  case frame_kind::read_request:
    begin_read_request();
    break;
  case frame_kind::atomic_request:
    begin_atomic_request();
    break;
  case frame_kind::read_response:
  case frame_kind::atomic_response:
    begin_response();
    break;
  case frame_kind::acknowledge:
    break;
  case frame_kind::bye:
    take_bye();
    break;
  }
}

// Takes some of the payload to where it belongs.
// @returns how many bytes; 0 when none are there or the pair has failed.
size_t pair::take_payload() {
  switch (in_.header.kind) {
  case frame_kind::send: {
    auto count = stream_->read(receiving_->buffer.subspan(received_, in_.left));
    received_ += count;
    return count;
  }
  case frame_kind::write: {
    size_t count = 0;
    bool allowed =
        device_->regions().serve(writing_, in_.left, access::remote_write, [&](std::byte* place) {
          count = stream_->read({place, in_.left});
        });
    if (!allowed)
      deny(served_sequence_);
    writing_.address += count;
    return count;
  }
  case frame_kind::read_response: {
    auto question = oldest_question();
    auto count = stream_->read({question->data + question->answered, in_.left});
    question->answered += count;
    return count;
  }
  case frame_kind::atomic_response: {
    auto word = std::as_writable_bytes(std::span{&atomic_answer_, 1});
    return stream_->read(word.subspan(sizeof atomic_answer_ - in_.left));
  }
  default:
    return 0;
  }
}

void pair::end_part() {
  const auto& header = in_.header;
  bool last = (header.flags & last_part) != 0;
  switch (header.kind) {
  case frame_kind::send:
    if (last) {
      report_receive(*receiving_, errc::none, received_);
      receiving_.reset();
    }
    break;
  case frame_kind::write:
    if (last)
      served_acknowledged_ = served_sequence_;
    break;
  case frame_kind::read_response:
  case frame_kind::atomic_response: {
    auto question = oldest_question();
    if (question->is_atomic())
      std::memcpy(question->data, &atomic_answer_, sizeof atomic_answer_);
    if (last) {
      question->done = true;
      --reads_unanswered_;
      --unanswered_;
    }
    break;
  }
  default:
    break;
  }
}

// -- messages -------------------------------------------------------------------------------------

void pair::begin_send() {
  const auto& header = in_.header;
  bool first = (header.flags & first_part) != 0;
  if (first == receiving_.has_value() || (first && receives_.empty())) {
    violation("a message where none may come");
    return;
  }
  if (first) {
    receiving_ = receives_.pop_front();
    received_ = 0;
    ++consumed_;
  }
  if (header.length > receiving_->buffer.size() - received_) {
    report_receive(*receiving_, errc::local_length, 0);
    receiving_.reset();
    fail_pair(errc::local_length, "a message from " + to_string(peer_) +
                                      " is longer than the receive that was posted for it");
  }
}

void pair::begin_notify() {
  auto what = extension<notify_extension>();
  if (receiving_ || receives_.empty()) {
    violation("a notification where none may come");
    return;
  }
  auto into = receives_.pop_front();
  ++consumed_;
  completion done;
  done.id = into.id;
  done.pair = this;
  done.op = opcode::receive;
  done.length = what.length;
  done.has_immediate = true;
  done.immediate = what.immediate;
  ++receives_held_;
  completions_->push(done);
}

// -- what the peer does with our memory -----------------------------------------------------------

void pair::begin_write() {
  if ((in_.header.flags & first_part) != 0) {
    auto place = extension<place_extension>();
    if (write_left_ > 0) {
      violation("a write within a write");
      return;
    }
    served_sequence_ = sequence_after(served_sequence_);
    writing_ = {place.address, place.key};
    write_left_ = place.length;
    if (!device_->regions().serve(writing_, place.length, access::remote_write,
                                  [](std::byte*) {})) {
      deny(served_sequence_);
      return;
    }
  }
  bool last = (in_.header.flags & last_part) != 0;
  if (in_.header.length > write_left_ || last != (in_.header.length == write_left_)) {
    violation("a write of another length than announced");
    return;
  }
  write_left_ -= in_.header.length;
}

void pair::begin_read_request() {
  auto place = extension<place_extension>();
  served_sequence_ = sequence_after(served_sequence_);
  if (answers_.size() >= limits_of_soft.max_reads || place.length == 0) {
    violation("more reads at once than agreed");
    return;
  }
  answer owed;
  owed.place = {place.address, place.key};
  owed.length = place.length;
  owed.sequence = served_sequence_;
  if (device_->regions().serve(owed.place, place.length, access::remote_read, [](std::byte*) {}))
    answers_.push_back(owed);
  else
    deny(served_sequence_);
}

void pair::begin_atomic_request() {
  auto what = extension<atomic_extension>();
  served_sequence_ = sequence_after(served_sequence_);
  if (answers_.size() >= limits_of_soft.max_reads) {
    violation("more atomic operations at once than agreed");
    return;
  }
  answer owed;
  owed.place = {what.address, what.key};
  owed.atomic = true;
  owed.sequence = served_sequence_;
  bool allowed = what.address % sizeof(uint64_t) == 0 &&
                 device_->regions().serve(
                     owed.place, sizeof(uint64_t), access::remote_atomic, [&](std::byte* place) {
                       std::atomic_ref word{*reinterpret_cast<uint64_t*>(place)};
                       owed.old_value = what.operand;
                       if (what.swaps == 1)
                         word.compare_exchange_strong(owed.old_value, what.swap);
                       else
                         owed.old_value = word.fetch_add(what.operand);
                     });
  if (allowed)
    answers_.push_back(owed);
  else
    deny(served_sequence_);
}

void pair::deny(uint32_t sequence) {
  log_for("soft")->info("refused an operation of {} on memory that it may not reach",
                        to_string(peer_));
  fail_pair(errc::remote_access,
            to_string(peer_) + " tried to reach memory that it has no right to", sequence);
}

// -- what the peer says of our work ---------------------------------------------------------------

// The oldest read or atomic that was asked and not answered.
pair::work_entry* pair::oldest_question() {
  for (size_t i = 0; i < next_; ++i) {
    auto& entry = work_[i];
    if (!entry.done && entry.carried && (entry.is(opcode::read) || entry.is_atomic()))
      return &entry;
  }
  return nullptr;
}

void pair::begin_response() {
  const auto& header = in_.header;
  auto question = oldest_question();
  bool fits = question != nullptr;
  if (fits && header.kind == frame_kind::atomic_response) {
    fits = question->is_atomic() && header.length == sizeof(uint64_t) &&
           (header.flags & last_part) != 0;
  } else if (fits) {
    auto expected = question->length() - question->answered;
    bool last = (header.flags & last_part) != 0;
    fits = question->is(opcode::read) && header.length > 0 && header.length <= expected &&
           last == (header.length == expected);
  }
  if (!fits)
    violation("an answer to what was not asked");
}

// @returns whether `acknowledged` is a sequence number that it may be.
bool pair::take_acknowledgement(uint32_t acknowledged) {
  if (acknowledged == acknowledged_)
    return true;
  if (acknowledged - acknowledged_ > sequence_ - acknowledged_)
    return false;
  acknowledged_ = acknowledged;
  // The one in front of next_ may have its notification still to send.
  for (size_t i = 0; i < work_.size() && i <= next_; ++i) {
    auto& entry = work_[i];
    if (entry.sequence == 0 || entry.acknowledged || !entry.is_write() ||
        static_cast<int32_t>(acknowledged - entry.sequence) < 0)
      continue;
    entry.acknowledged = true;
    --unanswered_;
    entry.done = i < next_;
  }
  return true;
}

void pair::take_bye() {
  auto bye = extension<bye_extension>();
  auto text = to_string(peer_) + " has closed the connection";
  if (bye.reason == static_cast<uint32_t>(errc::remote_access) && bye.sequence != 0) {
    for (size_t i = 0; i < work_.size() && i <= next_; ++i)
      if (work_[i].sequence == bye.sequence && !work_[i].done)
        work_[i].status = errc::remote_access;
    text = to_string(peer_) + " refused an operation on its memory";
  } else if (bye.reason == static_cast<uint32_t>(errc::local_length)) {
    text = to_string(peer_) + " had no receive that was long enough for a message";
  }
  fail_pair(errc::disconnected, text);
}

void pair::violation(const char* what) {
  log_for("soft")->warn("{} sent {}", to_string(peer_), what);
  fail_pair(errc::protocol_violation, to_string(peer_) + " sent " + what);
}

} // namespace troupe::transport::soft
