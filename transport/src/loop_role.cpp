#include "loop_role.hpp"

namespace troupe::transport {

uint64_t loop_role::enter_handler() {
  auto step = step_.fetch_add(1, std::memory_order_seq_cst) + 1;
  // Either this sees that the watcher dozes, or the watcher sees the step (see `watch`).
  if (dozing_.load(std::memory_order_seq_cst)) {
    std::lock_guard held{mutex_};
    dozing_.store(false, std::memory_order_relaxed);
    watch_over_.notify_one();
  }
  return step;
}

bool loop_role::stand_by() {
  standing_by_.fetch_add(1, std::memory_order_relaxed);
  std::unique_lock held{mutex_};
  next_watch_.wait(held, [this] { return closed_ || !watching_; });
  watching_ = true;
  auto taken = watch(held);
  watching_ = false;
  standing_by_.fetch_sub(1, std::memory_order_relaxed);
  held.unlock();
  next_watch_.notify_one();
  return taken;
}

bool loop_role::watch(std::unique_lock<std::mutex>& held) {
  auto seen = step_.load(std::memory_order_acquire);
  while (!closed_) {
    watch_over_.wait_for(held, period_);
    auto step = step_.load(std::memory_order_acquire);
    if (step != seen) {
      seen = step;
    } else if (in_handler(step)) {
      if (step_.compare_exchange_strong(step, step + 1, std::memory_order_acq_rel)) {
        claim();
        return true;
      }
    } else {
      // Nothing ran for a whole period: sleep until something does.
      dozing_.store(true, std::memory_order_seq_cst);
      if (step_.load(std::memory_order_seq_cst) == seen)
        watch_over_.wait(held,
                         [this] { return closed_ || !dozing_.load(std::memory_order_relaxed); });
      dozing_.store(false, std::memory_order_relaxed);
    }
  }
  return false;
}

void loop_role::close() {
  {
    std::lock_guard held{mutex_};
    closed_ = true;
  }
  watch_over_.notify_all();
  next_watch_.notify_all();
}

} // namespace troupe::transport
