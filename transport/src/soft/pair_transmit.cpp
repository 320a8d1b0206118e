// The sending half of a pair: its own work, and answers to the peer's.
#include "soft/pair.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::transport::soft {

namespace {

// Bytes that one pair moves before others have their turn.
constexpr size_t turn_budget = 1024 * 1024;

// A frame of this size is worth telling the peer about before the next one is written.
constexpr size_t early_flush = 32 * 1024;

template <class T>
byte_view bytes_of_object(const T& object) {
  return std::as_bytes(std::span{&object, 1});
}

bool aligned(remote_address where) {
  return where.address % sizeof(uint64_t) == 0;
}

access right_for(opcode op) {
  switch (op) {
  case opcode::read:
    return access::remote_read;
  case opcode::fetch_add:
  case opcode::compare_swap:
    return access::remote_atomic;
  default:
    return access::remote_write;
  }
}

} // namespace

// Sends what can be sent now.
// @returns whether there is more to do without waiting for anybody.
bool pair::transmit() {
  auto budget = turn_budget;
  auto stopped = push_frames(budget);
  if (phase_ == phase::established && (stopped == stop::no_room || stopped == stop::no_receive)) {
    stream_->wait_for_peer();
    stopped = push_frames(budget);
  }
  if (phase_ != phase::established)
    return false;
  if (!out_.active && owes_word()) {
    start_frame(outgoing_frame::origin::none, frame_kind::acknowledge, 0, {}, {});
    write_frame();
    if (phase_ != phase::established)
      return false;
  }
  bool all_out = stream_->flush() && !out_.active;
  if (tcp_ && all_out == output_wanted_) {
    output_wanted_ = !all_out;
    completions_->watch_output(*this, tcp_->socket(), output_wanted_);
  }
  complete_front();
  return stopped == stop::budget;
}

pair::stop pair::push_frames(size_t& budget) {
  for (;;) {
    if (out_.active && !write_frame())
      return stop::no_room;
    if (phase_ != phase::established)
      return stop::idle;
    if (budget == 0)
      return stop::budget;
    // One part of an answer and one of our own in turn, so that neither starves.
    answer_next_ = !answer_next_;
    if (answer_next_ && push_answer(budget))
      continue;
    bool moved = false;
    auto stopped = push_work(budget, moved);
    if (phase_ != phase::established)
      return stop::idle;
    if (!moved && !push_answer(budget))
      return stopped;
  }
}

// Starts the next part of an answer, if there is any.
bool pair::push_answer(size_t& budget) {
  if (phase_ != phase::established || answers_.empty())
    return false;
  const auto& first = answers_.front();
  if (first.atomic) {
    start_frame(outgoing_frame::origin::answer, frame_kind::atomic_response, first_part | last_part,
                {}, bytes_of_object(first.old_value));
    return true;
  }
  auto part = std::min<uint64_t>(first.length - first.offset, largest_part);
  auto flags = first.offset + part == first.length ? last_part : uint8_t{0};
  // The key may have been revoked since.
  if (!device_->regions().serve(first.place, part, access::remote_read, [](std::byte*) {})) {
    deny(first.sequence);
    return true;
  }
  start_frame(outgoing_frame::origin::answer, frame_kind::read_response, flags, {}, {});
  out_.place = first.place;
  out_.body_size = part;
  auto length = static_cast<uint32_t>(part);
  std::memcpy(out_.head.data() + offsetof(frame_header, length), &length, sizeof length);
  budget -= std::min<size_t>(budget, part);
  return true;
}

// Carries out the next piece of our own work. `moved` tells whether anything came of it.
pair::stop pair::push_work(size_t& budget, bool& moved) {
  if (next_ >= work_.size())
    return stop::idle;
  auto& entry = work_[next_];
  if (entry.is(opcode::send)) {
    if (entry.progress == 0 && !may_send())
      return stop::no_receive;
    auto part = std::min<size_t>(entry.length() - entry.progress, largest_part);
    auto flags = static_cast<uint8_t>((entry.progress == 0 ? first_part : 0) |
                                      (entry.progress + part == entry.length() ? last_part : 0));
    start_frame(outgoing_frame::origin::work, frame_kind::send, flags, {},
                {entry.data + entry.progress, part});
    budget -= std::min<size_t>(budget, part);
    moved = true;
    return stop::idle;
  }
  if (entry.progress == entry.length() && !entry.is_atomic()) {
    if (entry.is(opcode::write_notify))
      return push_notify(entry, moved);
    entry.done = true; // of no length: nothing to do, and no key to check
    ++next_;
    moved = true;
    return stop::idle;
  }
  if (entry.is(opcode::write_notify) && entry.progress == 0 && !may_send())
    return stop::no_receive;
  if (link_ && !entry.carried && unanswered_ == 0)
    return push_direct(entry, budget, moved);
  if (link_ && !entry.carried)
    return stop::idle; // what is carried by frames comes first
  return push_carried(entry, budget, moved);
}

pair::stop pair::push_direct(work_entry& entry, size_t& budget, bool& moved) {
  auto where = entry.request.remote;
  if (ring_->peer_closed()) {
    // Its last frames come first; reading them to the end fails this pair.
    completions_->run_later(*this);
    return stop::idle;
  }
  moved = true;
  if (entry.progress == 0 && !link_->allowed(where, entry.length(), right_for(entry.request.op))) {
    entry.status = errc::remote_access;
    fail_pair(errc::remote_access,
              "an operation on memory of " + to_string(peer_) + " was refused");
    return stop::idle;
  }
  auto part = std::min(entry.length() - entry.progress, turn_budget);
  where.address += entry.progress;
  auto local = entry.data + entry.progress;
  auto outcome = reach::refused;
  if (entry.is(opcode::read)) {
    outcome = link_->read(where, {local, part});
  } else if (!entry.is_atomic()) {
    outcome = link_->write(where, {local, part});
  } else if (aligned(where)) {
    uint64_t old = 0;
    outcome = link_->atomic(where, entry.is(opcode::compare_swap), entry.request.operand,
                            entry.request.swap, old);
    if (outcome == reach::done)
      std::memcpy(local, &old, sizeof old);
  }
  switch (outcome) {
  case reach::done:
    entry.progress += part;
    budget -= std::min(budget, part);
    if (entry.progress == entry.length() && !entry.is(opcode::write_notify)) {
      entry.done = true;
      ++next_;
    }
    break;
  case reach::refused:
    entry.status = errc::remote_access;
    fail_pair(errc::remote_access,
              "an operation on memory of " + to_string(peer_) + " was refused");
    break;
  case reach::indirect:
    entry.carried = true;
    break;
  }
  return stop::idle;
}

pair::stop pair::push_carried(work_entry& entry, size_t& budget, bool& moved) {
  entry.carried = true;
  // The peer answers reads when it comes to it: what changes memory must not overtake that.
  bool waits = entry.is(opcode::read) ? reads_unanswered_ >= limits_of_soft.max_reads
                                      : reads_unanswered_ > 0;
  if (waits && entry.sequence == 0)
    return stop::idle;
  bool first = entry.sequence == 0;
  if (first) {
    entry.sequence = sequence_ = sequence_after(sequence_);
    ++unanswered_;
  }
  moved = true;
  if (entry.is_atomic()) {
    atomic_extension what{entry.request.remote.address, entry.request.operand, entry.request.swap,
                          entry.request.remote.key, entry.is(opcode::compare_swap) ? 1U : 0U};
    ++reads_unanswered_;
    start_frame(outgoing_frame::origin::work, frame_kind::atomic_request, 0, bytes_of_object(what),
                {});
    return stop::idle;
  }
  place_extension place{entry.request.remote.address + entry.progress,
                        entry.length() - entry.progress, entry.request.remote.key, 0};
  if (entry.is(opcode::read)) {
    ++reads_unanswered_;
    entry.answered = entry.progress;
    start_frame(outgoing_frame::origin::work, frame_kind::read_request, 0, bytes_of_object(place),
                {});
    return stop::idle;
  }
  auto part = std::min<size_t>(entry.length() - entry.progress, largest_part);
  auto flags = static_cast<uint8_t>((first ? first_part : 0) |
                                    (entry.progress + part == entry.length() ? last_part : 0));
  start_frame(outgoing_frame::origin::work, frame_kind::write, flags,
              first ? bytes_of_object(place) : byte_view{}, {entry.data + entry.progress, part});
  budget -= std::min<size_t>(budget, part);
  return stop::idle;
}

pair::stop pair::push_notify(work_entry& entry, bool& moved) {
  if (!may_send())
    return stop::no_receive;
  notify_extension what{entry.length(), entry.request.immediate, 0};
  start_frame(outgoing_frame::origin::work, frame_kind::notify, 0, bytes_of_object(what), {});
  moved = true;
  return stop::idle;
}

// Whether the peer has posted a receive that no earlier send of ours takes.
bool pair::may_send() {
  if (link_)
    peer_receives_ = stream_->offered_receives();
  return static_cast<int32_t>(peer_receives_ - sends_) > 0;
}

// Whether the peer must be told something that no other frame has told it.
bool pair::owes_word() const noexcept {
  if (served_acknowledged_ != acknowledgement_sent_)
    return true;
  if (link_ || posted_ == advertised_)
    return false;
  // It may be waiting, or will be before long.
  return advertised_ == consumed_ || posted_ - advertised_ >= receives_.capacity() / 2;
}

void pair::start_frame(outgoing_frame::origin from, frame_kind kind, uint8_t flags,
                       byte_view extension, byte_view body) {
  frame_header header;
  header.length = static_cast<uint32_t>(body.size());
  header.kind = kind;
  header.flags = flags;
  header.acknowledged = served_acknowledged_;
  header.receives = posted_;
  acknowledgement_sent_ = served_acknowledged_;
  advertised_ = posted_;
  std::memcpy(out_.head.data(), &header, sizeof header);
  if (!extension.empty())
    std::memcpy(out_.head.data() + sizeof header, extension.data(), extension.size());
  out_.head_size = sizeof header + extension.size();
  out_.head_sent = 0;
  // A frame without a body is no answer from registered memory.
  out_.body = body.empty() && kind != frame_kind::read_response ? out_.head.data() : body.data();
  out_.body_size = body.size();
  out_.body_sent = 0;
  out_.from = from;
  out_.kind = kind;
  out_.active = true;
}

// Writes the frame in progress.
// @returns whether it is out, or the pair has failed.
bool pair::write_frame() {
  byte_view head{out_.head.data() + out_.head_sent, out_.head_size - out_.head_sent};
  auto rest = out_.body_size - out_.body_sent;
  size_t taken = 0;
  if (out_.body) {
    taken = stream_->write(head, {out_.body + out_.body_sent, rest});
  } else {
    remote_address where{out_.place.address + out_.body_sent, out_.place.key};
    bool served = device_->regions().serve(where, rest, access::remote_read, [&](std::byte* place) {
      taken = stream_->write(head, {place, rest});
    });
    if (!served) {
      fail_pair(errc::remote_access, "memory that " + to_string(peer_) + " was reading went away");
      return true;
    }
  }
  auto of_head = std::min(taken, head.size());
  out_.head_sent += of_head;
  out_.body_sent += taken - of_head;
  if (out_.head_sent < out_.head_size || out_.body_sent < out_.body_size)
    return false;
  out_.active = false;
  if (out_.body_size >= early_flush)
    stream_->flush();
  frame_written();
  return true;
}

void pair::frame_written() {
  if (out_.from == outgoing_frame::origin::answer) {
    auto& first = answers_.front();
    first.offset += out_.body_size;
    first.place.address += out_.body_size;
    if (first.atomic || first.offset == first.length)
      answers_.pop_front();
    return;
  }
  if (out_.from != outgoing_frame::origin::work)
    return;
  auto& entry = work_[next_];
  switch (out_.kind) {
  case frame_kind::send:
    entry.progress += out_.body_size;
    if (entry.progress < entry.length())
      return;
    ++sends_;
    entry.done = true;
    break;
  case frame_kind::write:
    entry.progress += out_.body_size;
    if (entry.progress < entry.length() || entry.is(opcode::write_notify))
      return;
    entry.done = entry.acknowledged;
    break;
  case frame_kind::notify:
    ++sends_;
    entry.done = entry.sequence == 0 || entry.acknowledged;
    break;
  default: // reads and atomics are done when their answer comes
    break;
  }
  ++next_;
}

} // namespace troupe::transport::soft
