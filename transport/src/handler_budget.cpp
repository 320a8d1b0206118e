#include "handler_budget.hpp"

#include <algorithm>

namespace troupe::transport {

namespace {

// More offenders than this are worth a look for those that may be forgotten.
constexpr size_t many_offenders = 1024;

} // namespace

void handler_budget::ran(uint64_t actor, duration took, time_point now) {
  spent_ += took;
  if (took > limits_.turn) {
    punish(actor, limits_.first_penalty, now);
  } else if (!offenders_.empty()) {
    auto found = offenders_.find(actor);
    if (found != offenders_.end() && now >= found->second.until + found->second.penalty)
      offenders_.erase(found);
  }
}

void handler_budget::overran(uint64_t actor, time_point now) {
  punish(actor, limits_.longest_penalty, now);
}

void handler_budget::punish(uint64_t actor, duration least, time_point now) {
  if (offenders_.size() >= many_offenders)
    forgive(now);
  auto& record = offenders_[actor];
  auto penalty = std::clamp(record.penalty * 2, least, limits_.longest_penalty);
  record = {now + penalty, penalty};
}

void handler_budget::forgive(time_point now) {
  std::erase_if(offenders_, [now](const auto& entry) {
    return now >= entry.second.until + entry.second.penalty;
  });
}

} // namespace troupe::transport
