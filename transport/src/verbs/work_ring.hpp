// The books of one queue of a queue pair: what was posted, in order, and what has ended.
#pragma once

#include "troupe/transport/device.hpp"

#include <cstdint>
#include <vector>

namespace troupe::transport::verbs {

/// One work request that the adapter was given.
struct posted_work {
  uint64_t id = 0;
  opcode op = opcode::send;
  bool signaled = true;    ///< its success is reported to the user
  bool first_half = false; ///< the write of an emulated write_notify, whose send follows
};

/// The end of a posted work that the user is to hear of.
struct ended_work {
  uint64_t id = 0;
  opcode op = opcode::send;
  errc status = errc::none;
  uint32_t slot = 0;
};

/// Keeps a record for each outstanding work request in a ring of slots and reports their ends in
/// the order of posting. Adapters announce the end of an unsignaled request only by that of a later
/// one, and iWARP adapters let a send overtake a read: neither shows here.
///
/// Some unsignaled requests must be signaled to the adapter all the same, or their slots would
/// never come back; the ring says which and has slots to spare for the unsignaled ones behind the
/// last signaled one, so that a batch of `depth` requests always fits once the signaled ones have
/// ended.
class work_ring {
public:
  /// @param depth requests that the user may have outstanding.
  /// @param slots_per_request 2 when a write_notify takes a write and a send, else 1.
  /// @param all_signaled whether every request is signaled (receives).
  work_ring(uint32_t depth, uint32_t slots_per_request, bool all_signaled);

  /// The slots, which is what the adapter's queue must hold.
  uint32_t slots() const noexcept { return static_cast<uint32_t>(records_.size()); }

  /// How many requests may be posted now.
  uint32_t room() const noexcept;

  uint32_t outstanding_slots() const noexcept { return count_; }

  struct placement {
    uint32_t slot = 0;
    bool signal = true; ///< whether the adapter must announce success
  };

  /// Records one request (or half of one) within `room()`.
  placement push(const posted_work& work);

  /// What is outstanding in `slot`, or null.
  const posted_work* find(uint32_t slot) const noexcept {
    return holds(slot) ? &records_[slot].work : nullptr;
  }

  /// Notes that the adapter announced the end of `slot` and hands every end that can now be told to
  /// `report(const ended_work&)`.
  /// @returns false when nothing is outstanding in `slot`: the announcement means nothing.
  template <class Report>
  bool end(uint32_t slot, errc status, Report&& report) {
    if (!mark(slot, status))
      return false;
    ended_work next;
    for (auto step = advance(next); step != progress::none; step = advance(next))
      if (step == progress::visible)
        report(static_cast<const ended_work&>(next));
    return true;
  }

  /// Ends everything outstanding, as `errc::flushed` unless the adapter told otherwise.
  template <class Report>
  void flush(Report&& report) {
    while (count_ > 0)
      end(head_, errc::flushed, report);
  }

private:
  struct record {
    posted_work work;
    bool expected = false; ///< the adapter announces its success
    bool ended = false;
    bool muted = false; ///< the failure of its first half was reported
    errc status = errc::none;
  };
  enum class progress { none, hidden, visible };

  bool holds(uint32_t slot) const noexcept;
  bool mark(uint32_t slot, errc status);
  progress advance(ended_work& out);

  uint32_t depth_;
  uint32_t interval_; ///< longest run of requests without a signaled one
  std::vector<record> records_;
  uint32_t head_ = 0;
  uint32_t count_ = 0;    ///< slots in use
  uint32_t requests_ = 0; ///< requests in use, halves counted once
  uint32_t tail_run_ = 0; ///< requests behind the last signaled one
  uint32_t ended_ = 0;    ///< marked, not yet passed by the head
  bool failed_ = false;   ///< a failure was passed: what follows did not succeed unannounced
};

} // namespace troupe::transport::verbs
