// Nodes that want an id which another has.
#pragma once

#include "troupe/framework/node_info.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace troupe::cluster {

/// Tells a restarted node, whose old incarnation's death has not been noticed yet, from a second
/// node of the same id: a claim waits until the holder of the id is dead, or has given signs of
/// life. One thread.
template <class Claim>
class id_claims {
public:
  /// So many signs refute a claim: what the first one tells may have happened before the claim.
  static constexpr int signs_wanted = 2;

  void add(incarnation_id holder, Claim claim) {
    waiting_.push_back({holder, 0, std::move(claim)});
  }

  /// Drops the claims of which `Predicate` says so.
  template <class Predicate>
  void drop(Predicate unwanted) {
    std::erase_if(waiting_, [&](auto& it) { return unwanted(it.claim); });
  }

  /// `holder` has given a sign of life. @returns the claims that this refutes, oldest first.
  std::vector<Claim> heard(incarnation_id holder) {
    return take([&](entry& it) { return it.holder == holder && ++it.signs >= signs_wanted; });
  }

  /// `holder` has died or left. @returns the claims that waited for it, oldest first.
  std::vector<Claim> gone(incarnation_id holder) {
    return take([&](entry& it) { return it.holder == holder; });
  }

private:
  struct entry {
    incarnation_id holder = 0;
    int signs = 0;
    Claim claim;
  };

  template <class Predicate>
  std::vector<Claim> take(Predicate wanted) {
    auto first = std::stable_partition(waiting_.begin(), waiting_.end(),
                                       [&](entry& it) { return !wanted(it); });
    std::vector<Claim> out;
    for (auto it = first; it != waiting_.end(); ++it)
      out.push_back(std::move(it->claim));
    waiting_.erase(first, waiting_.end());
    return out;
  }

  std::vector<entry> waiting_;
};

} // namespace troupe::cluster
