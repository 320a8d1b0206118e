// A ring of 64-byte messages between two processes.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace bench {

/// One writer, one reader, each in one thread. Lives in shared memory that is all zero at first.
class shared_queue {
public:
  static constexpr uint32_t capacity = 1024;
  static constexpr uint32_t window = 1000; ///< most messages that are not read yet
  using message = std::array<char, 64>;

  void push(const message& from, bool spinning) {
    auto at = written_.load(std::memory_order_relaxed);
    for (auto read = read_.load(std::memory_order_acquire); at - read >= window;
         read = read_.load(std::memory_order_acquire))
      wait(read_, read, writer_sleeps_, spinning);
    slots_[at % capacity] = from;
    written_.store(at + 1, std::memory_order_seq_cst);
    wake(written_, reader_sleeps_);
  }

  void pop(message& to, bool spinning) {
    auto at = read_.load(std::memory_order_relaxed);
    while (written_.load(std::memory_order_acquire) == at)
      wait(written_, at, reader_sleeps_, spinning);
    to = slots_[at % capacity];
    read_.store(at + 1, std::memory_order_seq_cst);
    // A writer that waits is woken when a quarter of the window is free, as one that is
    // acknowledged.
    if (written_.load(std::memory_order_relaxed) - at <= window * 3 / 4)
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
