// The books of what the workers have and what is given out. They balance at every instant:
// granted + free = total, on each node and for each kind of resource.
#pragma once

#include "troupe/framework/node_info.hpp"
#include "troupe/transport/error.hpp"

#include <cstdint>
#include <map>
#include <optional>

namespace troupe::cluster {

/// An amount of everything that is granted.
struct resource_amount {
  uint32_t cpus = 0;
  uint64_t memory = 0; ///< bytes

  bool operator==(const resource_amount&) const = default;

  /// Whether each part of `asked` is there.
  bool covers(const resource_amount& asked) const noexcept {
    return cpus >= asked.cpus && memory >= asked.memory;
  }
};

/// Names one grant; never used again after its release.
using grant_id = uint64_t;

/// The page of one node.
struct node_account {
  resource_amount total;
  resource_amount free;
  resource_amount granted;
  size_t grants = 0; ///< how many make up `granted`
};

/// Grants and takes back the resources of node incarnations. One thread.
class resource_book {
public:
  /// Opens a page with everything free.
  /// @returns `errc::already_exists` when there is one.
  status add_node(incarnation_id node, resource_amount total);

  /// Closes a page; its grants end with it.
  /// @returns the page as it was, or nothing when there was none.
  std::optional<node_account> remove_node(incarnation_id node);

  /// Takes `amount` from what is free on `node`.
  /// @returns `errc::no_resources` when less is free, `errc::not_found` for an unknown node.
  result<grant_id> grant(incarnation_id node, resource_amount amount);

  /// Gives a grant back.
  /// @returns false when there is no such grant: it was released, or ended with its node.
  bool release(grant_id grant);

  /// The page of `node`, null when there is none. Valid until that page is closed.
  const node_account* find(incarnation_id node) const;

  /// All pages.
  const std::map<incarnation_id, node_account>& nodes() const noexcept { return nodes_; }

  /// Recounts every page from the single grants: whether they agree, and granted + free = total.
  bool balanced() const;

private:
  struct entry {
    incarnation_id node = 0;
    resource_amount amount;
  };

  std::map<incarnation_id, node_account> nodes_;
  std::map<grant_id, entry> grants_;
  grant_id next_ = 1;
};

} // namespace troupe::cluster
