#include "troupe/actors/resource_book.hpp"

#include "troupe/framework/units.hpp"

#include <string>

namespace troupe::cluster {

namespace {

void add(resource_amount& sum, const resource_amount& amount) {
  sum.cpus += amount.cpus;
  sum.memory += amount.memory;
}

void subtract(resource_amount& sum, const resource_amount& amount) {
  sum.cpus -= amount.cpus;
  sum.memory -= amount.memory;
}

std::string spell(const resource_amount& amount) {
  return std::to_string(amount.cpus) + " CPUs and " + format_size(amount.memory);
}

} // namespace

status resource_book::add_node(incarnation_id node, resource_amount total) {
  if (!nodes_.emplace(node, node_account{total, total, {}, 0}).second)
    return fail(errc::already_exists,
                "the resources of incarnation " + format_incarnation(node) + " are in the book");
  return {};
}

std::optional<node_account> resource_book::remove_node(incarnation_id node) {
  auto found = nodes_.find(node);
  if (found == nodes_.end())
    return std::nullopt;
  auto page = found->second;
  nodes_.erase(found);
  std::erase_if(grants_, [node](auto& grant) { return grant.second.node == node; });
  return page;
}

result<grant_id> resource_book::grant(incarnation_id node, resource_amount amount) {
  auto found = nodes_.find(node);
  if (found == nodes_.end())
    return fail(errc::not_found,
                "incarnation " + format_incarnation(node) + " has no resources in the book");
  auto& page = found->second;
  if (!page.free.covers(amount))
    return fail(errc::no_resources, spell(amount) + " asked of incarnation " +
                                        format_incarnation(node) + ", " + spell(page.free) +
                                        " are free");
  subtract(page.free, amount);
  add(page.granted, amount);
  ++page.grants;
  grants_.emplace(next_, entry{node, amount});
  return next_++;
}

bool resource_book::release(grant_id grant) {
  auto found = grants_.find(grant);
  if (found == grants_.end())
    return false;
  auto& page = nodes_.at(found->second.node);
  subtract(page.granted, found->second.amount);
  add(page.free, found->second.amount);
  --page.grants;
  grants_.erase(found);
  return true;
}

const node_account* resource_book::find(incarnation_id node) const {
  auto found = nodes_.find(node);
  return found == nodes_.end() ? nullptr : &found->second;
}

bool resource_book::balanced() const {
  std::map<incarnation_id, node_account> counted;
  for (auto& [_, grant] : grants_) {
    auto& page = counted[grant.node];
    add(page.granted, grant.amount);
    ++page.grants;
  }
  for (auto& [node, page] : nodes_) {
    auto& recount = counted[node];
    auto sum = page.granted;
    add(sum, page.free);
    if (recount.granted != page.granted || recount.grants != page.grants || sum != page.total)
      return false;
  }
  // A grant on a node without a page has made a page of its own here.
  return counted.size() == nodes_.size();
}

} // namespace troupe::cluster
