// How a peer in another process tells a completion queue which of its pairs to look at: bits in
// shared memory that polling reads without a system call, and an eventfd for when nobody polls.
//
// The order that makes it safe: the caller publishes its data, then sets the pair's bit, then looks
// whether the owner sleeps. The owner says that it will sleep, then looks for bits once more.
#pragma once

#include "soft/descriptor.hpp"
#include "troupe/transport/error.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace troupe::transport::soft {

constexpr uint32_t doorbell_bits = 4096;

/// The shared part; starts as zeros.
struct doorbell_page {
  alignas(64) std::atomic<uint32_t> armed;
  alignas(64) std::atomic<uint64_t> summary; ///< which words of `ready` may not be 0
  alignas(64) std::atomic<uint64_t> ready[doorbell_bits / 64];
};

/// Announces to whoever sleeps on `page` and `event`, unless it was announced already.
void announce(doorbell_page& page, int event) noexcept;

/// The owner's end. One thread.
class doorbell {
public:
  static result<std::unique_ptr<doorbell>> make();

  doorbell(descriptor file, mapping memory, descriptor event);

  int file() const noexcept { return file_.get(); }
  int event() const noexcept { return event_.get(); }

  /// Reserves a bit for a pair; nothing when all are taken.
  std::optional<uint32_t> take_bit();
  void give_back(uint32_t bit);

  /// Appends the bits that were set since the last call to `bits`.
  void collect(std::vector<uint32_t>& bits);

  void arm() noexcept;
  bool armed() const noexcept;
  void announce_here() noexcept { announce(page(), event_.get()); }
  /// Consumes the announcement.
  void acknowledge() noexcept;

private:
  doorbell_page& page() const noexcept { return *reinterpret_cast<doorbell_page*>(memory_.data()); }

  descriptor file_;
  mapping memory_;
  descriptor event_;
  uint32_t bits_used_ = 0; // from the beginning
  std::vector<uint32_t> bits_free_;
};

/// A peer's end: one bit of its queue's doorbell.
class remote_doorbell {
public:
  remote_doorbell() = default;

  /// Maps `file` after checking it and `bit`.
  static result<remote_doorbell> open(const descriptor& file, descriptor event, uint32_t bit);

  /// Tells the peer to look at this connection. Data published before this call is visible to it
  /// then.
  void ring() noexcept;

private:
  mapping memory_;
  descriptor event_;
  uint32_t bit_ = 0;
};

} // namespace troupe::transport::soft
