// A ring of 64-byte messages between two processes.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace bench {

/// One writer, one reader, each in one thread. Lives in shared memory that is all zero at first.
class shared_queue {
public:
  static constexpr uint32_t capacity = 1024;
  static constexpr uint32_t window = 1000; ///< most messages that are not read yet
  using message = std::array<char, 64>;

  /// Writes `count` (at most `window`) messages, waits for room first, and shows all of them to the
  /// reader at once.
  void push(const message& from, uint32_t count, bool spinning) {
    auto at = written_.load(std::memory_order_relaxed);
    for (auto read = read_.load(std::memory_order_acquire); at + count - read > window;
         read = read_.load(std::memory_order_acquire))
      wait(read_, read, writer_sleeps_, spinning);
    for (uint32_t i = 0; i < count; ++i)
      slots_[(at + i) % capacity] = from;
    written_.store(at + count, std::memory_order_seq_cst);
    wake(written_, reader_sleeps_);
  }

  /// Waits for messages and reads `count` of them.
  void pop(message& to, uint32_t count, bool spinning) {
    auto at = read_.load(std::memory_order_relaxed);
    for (auto written = written_.load(std::memory_order_acquire); written - at < count;
         written = written_.load(std::memory_order_acquire))
      wait(written_, written, reader_sleeps_, spinning);
    for (uint32_t i = 0; i < count; ++i)
      to = slots_[(at + i) % capacity];
    read_.store(at + count, std::memory_order_seq_cst);
    wake(read_, writer_sleeps_);
  }

private:
  static void wait(std::atomic<uint32_t>& word, uint32_t while_it_is, std::atomic<uint32_t>& sleeps,
                   bool spinning) {
    if (spinning) {
      __builtin_ia32_pause();
      return;
    }
    sleeps.store(1, std::memory_order_seq_cst);
    if (word.load(std::memory_order_seq_cst) == while_it_is)
      ::syscall(SYS_futex, &word, FUTEX_WAIT, while_it_is, nullptr, nullptr, 0);
    sleeps.store(0, std::memory_order_relaxed);
  }

  static void wake(std::atomic<uint32_t>& word, std::atomic<uint32_t>& sleeps) {
    if (sleeps.load(std::memory_order_seq_cst) != 0)
      ::syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  }

  alignas(64) std::atomic<uint32_t> written_;
  std::atomic<uint32_t> reader_sleeps_;
  alignas(64) std::atomic<uint32_t> read_;
  std::atomic<uint32_t> writer_sleeps_;
  alignas(64) std::array<message, capacity> slots_;
};

} // namespace bench
