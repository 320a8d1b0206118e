// Which handlers may run on the event loop: those that take less time than waking another thread
// would be worth. Knows no CAF. Internal.
#pragma once

#include <chrono>
#include <cstdint>
#include <unordered_map>

namespace troupe::transport {

/// An actor whose turn takes longer than `turn` is kept off the loop for a while, which doubles
/// each time that it does so again soon after. One that behaves is forgotten: the common case costs
/// no look-up. One thread at a time.
class handler_budget {
public:
  using duration = std::chrono::nanoseconds;
  using time_point = std::chrono::steady_clock::time_point;

  struct limits {
    duration turn = std::chrono::microseconds{200}; ///< of one actor's turn
    duration all =
        std::chrono::microseconds{200}; ///< of all handlers between two looks at the network
    duration first_penalty = std::chrono::milliseconds{1}; ///< once, and perhaps just bad luck
    duration longest_penalty = std::chrono::seconds{10};
  };

  explicit handler_budget(limits chosen) : limits_(chosen) {}

  /// The loop has looked at the network.
  void begin_turn() noexcept { spent_ = {}; }

  /// Whether the handler of `actor` should run on the loop now.
  bool admits(uint64_t actor, time_point now) const {
    if (spent_ >= limits_.all)
      return false;
    if (offenders_.empty())
      return true;
    auto found = offenders_.find(actor);
    return found == offenders_.end() || now >= found->second.until;
  }

  /// Notes that a turn of `actor` that ended at `now` took so long.
  void ran(uint64_t actor, duration took, time_point now);

  /// Notes that `actor` had to be left behind: it kept the loop until it was taken over.
  void overran(uint64_t actor, time_point now);

private:
  struct offence {
    time_point until;
    duration penalty;
  };

  void punish(uint64_t actor, duration least, time_point now);
  void forgive(time_point now);

  limits limits_;
  duration spent_{};
  std::unordered_map<uint64_t, offence> offenders_;
};

} // namespace troupe::transport
