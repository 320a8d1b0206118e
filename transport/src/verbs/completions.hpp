// The completion queue of an adapter.
#pragma once

#include "adapter.hpp"

#include <chrono>
#include <deque>
#include <unordered_map>

namespace troupe::transport::verbs {

class connection;

/// Names one piece of posted work in the adapter's 64-bit work id.
struct work_tag {
  uint32_t owner = 0;   ///< of the connection, unique within its completion queue
  bool receive = false; ///< else of the send queue
  uint32_t slot = 0;    ///< in that queue's ring, below 2^31

  uint64_t pack() const noexcept {
    return (uint64_t{owner} << 32) | (receive ? 1U << 31 : 0U) | slot;
  }
  static work_tag unpack(uint64_t packed) noexcept {
    auto low = static_cast<uint32_t>(packed);
    return {static_cast<uint32_t>(packed >> 32), (low >> 31) != 0, low & ~(1U << 31)};
  }
};

/// Takes completions in order: into the caller's span while it has space, then into the backlog.
class completion_sink {
public:
  completion_sink(std::span<completion> out, std::deque<completion>& backlog)
      : out_(out), backlog_(backlog) {
    while (count_ < out_.size() && !backlog_.empty()) {
      out_[count_++] = backlog_.front();
      backlog_.pop_front();
    }
  }

  void put(const completion& done) {
    if (count_ < out_.size())
      out_[count_++] = done;
    else
      backlog_.push_back(done);
  }
  size_t count() const noexcept { return count_; }
  size_t space() const noexcept { return out_.size() - count_; }

private:
  std::span<completion> out_;
  std::deque<completion>& backlog_;
  size_t count_ = 0;
};

/// The adapter's objects behind a completion queue. Queue pairs that outlive their `connection` for
/// a while share them.
struct completion_entries {
  std::shared_ptr<adapter> on;
  completion_channel_handle channel;
  completion_queue_handle queue;
};

class completions final : public completion_queue {
public:
  static result<std::unique_ptr<completions>> create(const std::shared_ptr<adapter>& on,
                                                     uint32_t depth);
  ~completions() override;

  size_t poll(std::span<completion> out) override;
  void arm() override;
  void acknowledge() override;
  int fd() const noexcept override { return entries_->channel->fd; }

  ibv_cq* raw() const noexcept { return entries_->queue.get(); }
  std::shared_ptr<const completion_entries> entries() const noexcept { return entries_; }

  /// Reserves `entries` entries for `user`, growing the queue where the adapter can.
  /// @returns the owner number for its work tags, or `errc::limit_too_low`.
  result<uint32_t> enter(connection& user, uint32_t entries);

  /// Forgets `owner`, whose adapter queues are gone: none of its completions is returned later.
  void leave(uint32_t owner) noexcept;

  /// Asks that `user->settle` be called after each poll that empties the queue, until it is done.
  void settle_later(uint32_t owner);

private:
  struct member {
    connection* user = nullptr;
    uint32_t entries = 0;
    bool settling = false;
  };

  explicit completions(std::shared_ptr<const completion_entries> entries)
      : adapter_(entries->on), entries_(std::move(entries)) {}
  status make_room(uint32_t entries);
  void take(completion_sink& sink);
  void settle(completion_sink& sink);

  std::shared_ptr<adapter> adapter_;
  std::shared_ptr<const completion_entries> entries_;
  bool armed_ = false; ///< and not acknowledged since
  unsigned unacknowledged_ = 0;
  uint64_t reserved_ = 0; ///< entries
  uint32_t next_owner_ = 1;
  size_t settling_ = 0; ///< members that are
  bool broken_ = false; ///< polling failed, which was logged
  std::unordered_map<uint32_t, member> members_;
  std::deque<completion> backlog_;
};

} // namespace troupe::transport::verbs
