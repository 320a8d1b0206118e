// Which thread is the event loop. Internal.
//
// The loop runs handlers of the application between two turns, because waking another thread for
// each costs more than most of them take. A handler may block all the same, even on an answer that
// only the loop can bring. So the loop is a role, not a thread: a thread on stand-by watches it,
// and takes the role over when one handler has kept it for a whole watch period. The thread that
// lost the role finishes its handler like any other thread would, and then stands by itself.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace troupe::transport {

/// All members may be called by any thread unless they say otherwise. What the loop wrote before
/// `enter_handler` is visible to the thread that takes over.
class loop_role {
public:
  explicit loop_role(std::chrono::nanoseconds watch_period) : period_(watch_period) {}

  /// The calling thread takes the role that nobody has.
  void claim() noexcept { owner_.store(std::this_thread::get_id(), std::memory_order_release); }

  /// Whether the calling thread has the role.
  bool mine() const noexcept {
    return owner_.load(std::memory_order_acquire) == std::this_thread::get_id();
  }

  /// The owner is about to run a handler: from now on it may lose the role at any moment, and
  /// `mine` tells nothing until `leave_handler`. @returns what to give to `leave_handler`.
  uint64_t enter_handler();

  /// The handler has returned. @returns false when another thread has taken the role over: the
  /// caller must touch nothing of the loop.
  bool leave_handler(uint64_t step) noexcept {
    return step_.compare_exchange_strong(step, step + 1, std::memory_order_acq_rel);
  }

  /// Stands by until a handler keeps the loop too long. @returns true when the calling thread has
  /// taken the role over, false once `close` was called. Several threads may stand by; one of them
  /// watches.
  bool stand_by();

  /// Whether nobody stands by, nor is on the way to.
  bool unwatched() const noexcept { return standing_by_.load(std::memory_order_relaxed) == 0; }

  /// Ends all stand-by. The owner.
  void close();

private:
  bool watch(std::unique_lock<std::mutex>& held);

  static bool in_handler(uint64_t step) noexcept { return step % 2 == 1; }

  const std::chrono::nanoseconds period_;
  std::atomic<std::thread::id> owner_;
  std::atomic<uint64_t> step_ =
      0; // odd while a handler runs; advanced by who leaves it, or takes it over
  std::atomic<uint32_t> standing_by_ = 0;
  std::atomic<bool> dozing_ = false; // the watcher sleeps until the loop moves
  std::mutex mutex_;
  std::condition_variable watch_over_; // wakes the watcher
  std::condition_variable next_watch_; // wakes those who wait to be it
  bool watching_ = false;
  bool closed_ = false;
};

} // namespace troupe::transport
