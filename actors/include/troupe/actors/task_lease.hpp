// How long the tasks of a worker may run.
//
// A task must not run twice at once, and a controller that hears nothing of a worker cannot see
// whether its tasks still run. So they live on a lease, which no two clocks have to agree on:
//
//  1. the worker publishes an epoch in its state page, and notes when;
//  2. the controller reads it, notes when, and writes the epoch back into the worker's memory, by
//     RDMA Write with the notice `renewal_notice`;
//  3. the worker passes the end of the lease, the time of step 1 plus its length, to the guardian
//  of
//     its tasks, which kills them when that time comes, whatever became of the worker;
//  4. the controller counts from the time of step 2, which is later, and starts nothing again
//  before
//     the lease is over.
#pragma once

#include "troupe/actors/boot_clock.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

namespace troupe::cluster {

/// The notice that comes with an epoch; no slot has this number.
constexpr uint32_t renewal_notice = UINT32_MAX;

/// What is written: the epoch, little-endian.
constexpr size_t lease_bytes = 8;

/// The worker's side, of one incarnation. One thread.
class task_lease {
public:
  using time_point = boot_clock::time_point;

  /// Begins at `now`: no task may have been assigned before.
  task_lease(boot_clock::duration length, time_point now) : length_(length), end_(now + length) {}

  time_point end() const noexcept { return end_; }

  /// The worker is about to publish `epoch`, one more than the last time.
  void publish(uint64_t epoch, time_point now);

  /// The controller has seen `epoch`. Anything that was not published, or is older than what it saw
  /// before, changes nothing.
  /// @returns the new end, if it is later.
  std::optional<time_point> seen(uint64_t epoch);

private:
  boot_clock::duration length_;
  time_point end_;
  std::deque<std::pair<uint64_t, time_point>> published_; // since the last that was seen
};

} // namespace troupe::cluster
