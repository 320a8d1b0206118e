#include "troupe/actors/task_lease.hpp"

namespace troupe::cluster {

namespace {

// More than any that a controller can still answer: the older ones would not help.
constexpr size_t most_remembered = 1024;

} // namespace

void task_lease::publish(uint64_t epoch, time_point now) {
  published_.emplace_back(epoch, now);
  if (published_.size() > most_remembered)
    published_.pop_front();
}

std::optional<task_lease::time_point> task_lease::seen(uint64_t epoch) {
  std::optional<time_point> when;
  if (published_.empty() || epoch > published_.back().first)
    return when;
  while (!published_.empty() && published_.front().first <= epoch) {
    if (published_.front().first == epoch)
      when = published_.front().second;
    published_.pop_front();
  }
  if (!when || *when + length_ <= end_)
    return std::nullopt;
  end_ = *when + length_;
  return end_;
}

} // namespace troupe::cluster
