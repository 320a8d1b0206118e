// A ring of bytes in shared memory, with one writer and one reader.
//
// Each side keeps its own position to itself and publishes it; the other side's position is read
// from shared memory and believed only within the ring's capacity.
#pragma once

#include "troupe/transport/bytes.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>

namespace troupe::transport::soft {

/// The shared positions: bytes since the beginning, never reset.
struct ring_positions {
  alignas(64) std::atomic<uint64_t> written;
  alignas(64) std::atomic<uint64_t> consumed;
};

/// The writing end of a ring whose capacity is a power of two.
class ring_writer {
public:
  ring_writer(ring_positions& shared, byte_span storage) noexcept
      : shared_(&shared), storage_(storage) {}

  /// How many bytes `write` would take now; 0 also once the reader has broken the ring.
  size_t room() noexcept {
    consumed_ = shared_->consumed.load(std::memory_order_acquire);
    auto held = position_ - consumed_;
    return held > storage_.size() ? 0 : storage_.size() - held;
  }

  /// Copies as much of `bytes` as fits; the reader sees it after `publish`.
  /// @returns how many bytes that were.
  size_t write(byte_view bytes) noexcept {
    if (bytes.empty())
      return 0;
    // The reader only ever makes room: its last known position is a safe answer.
    auto held = position_ - consumed_;
    auto free = held > storage_.size() ? 0 : storage_.size() - held;
    if (free < bytes.size())
      free = room();
    auto count = std::min<size_t>(free, bytes.size());
    auto start = position_ & (storage_.size() - 1);
    auto first = std::min<size_t>(count, storage_.size() - start);
    if (first > 0)
      std::memcpy(storage_.data() + start, bytes.data(), first);
    if (count > first)
      std::memcpy(storage_.data(), bytes.data() + first, count - first);
    position_ += count;
    return count;
  }

  /// Shows everything written so far to the reader.
  /// @returns whether that was anything new.
  bool publish() noexcept {
    if (published_ == position_)
      return false;
    published_ = position_;
    shared_->written.store(position_, std::memory_order_release);
    return true;
  }

private:
  ring_positions* shared_;
  byte_span storage_;
  uint64_t position_ = 0;
  uint64_t published_ = 0;
  uint64_t consumed_ = 0;
};

/// The reading end.
class ring_reader {
public:
  ring_reader(ring_positions& shared, byte_view storage) noexcept
      : shared_(&shared), storage_(storage) {}

  /// How many bytes `read` would give now; 0 also once the writer has broken the ring.
  size_t available() noexcept {
    written_ = shared_->written.load(std::memory_order_acquire);
    return held();
  }

  /// Copies up to `into.size()` bytes out; the writer may reuse their place after `release`.
  /// @returns how many bytes that were.
  size_t read(byte_span into) noexcept {
    auto count = held();
    if (count < into.size())
      count = available();
    count = std::min<size_t>(count, into.size());
    auto start = position_ & (storage_.size() - 1);
    auto first = std::min<size_t>(count, storage_.size() - start);
    if (first > 0)
      std::memcpy(into.data(), storage_.data() + start, first);
    if (count > first)
      std::memcpy(into.data() + first, storage_.data(), count - first);
    position_ += count;
    return count;
  }

  /// Bytes read whose place the writer cannot use yet.
  size_t unreleased() const noexcept { return position_ - released_; }

  /// Gives the place of everything read so far back to the writer.
  /// @returns whether that was anything.
  bool release() noexcept {
    if (released_ == position_)
      return false;
    released_ = position_;
    shared_->consumed.store(position_, std::memory_order_release);
    return true;
  }

  /// Whether the writer's position is one that it cannot have.
  bool broken() const noexcept { return written_ - position_ > storage_.size(); }

private:
  size_t held() const noexcept { return broken() ? 0 : written_ - position_; }

  ring_positions* shared_;
  byte_view storage_;
  uint64_t position_ = 0;
  uint64_t released_ = 0;
  uint64_t written_ = 0;
};

} // namespace troupe::transport::soft
