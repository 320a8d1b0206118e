// How long the event loop looks for work before it sleeps. Knows no CAF. Internal.
#pragma once

#include <algorithm>
#include <chrono>

namespace troupe::transport {

/// Spinning pays when what is awaited comes within the window: a wake-up by the kernel costs more
/// than that. So the loop spins while it lately paid, and tries again now and then when it did not.
/// A loop that waits for long, as an idle one does, hardly ever spins. One thread.
class spin_policy {
public:
  using duration = std::chrono::nanoseconds;

  /// A window of zero never spins.
  explicit spin_policy(duration window) : window_(window) {}

  /// How long to spin now, before sleeping.
  duration next() {
    if (window_ == duration::zero())
      return {};
    if (credit_ > 0)
      return window_;
    return ++skipped_ % trial_every == 0 ? window_ : duration::zero();
  }

  /// Spinning found something.
  void paid() { credit_ = std::min(credit_ + 1, most_credit); }

  /// It found nothing in the whole window.
  void in_vain() { credit_ = std::max(credit_ - cost, 0); }

  /// The loop slept for so long and then had something to do.
  void slept(duration how_long) {
    if (window_ > duration::zero() && how_long < window_)
      paid();
  }

private:
  static constexpr int most_credit = 16;
  static constexpr int cost = 4; // of a window spun in vain, in windows that paid
  static constexpr unsigned trial_every = 64;

  duration window_;
  int credit_ = 0;
  unsigned skipped_ = 0;
};

} // namespace troupe::transport
