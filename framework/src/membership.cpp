#include "troupe/framework/membership.hpp"

#include "troupe/framework/units.hpp"

#include <algorithm>
#include <tuple>

namespace troupe {

namespace {

using kind = member_event::kind;

std::string named(const member& who) {
  return "node '" + who.id + "' (incarnation " + format_incarnation(who.incarnation) + ')';
}

std::string silent_for(std::chrono::nanoseconds silence) {
  return "silent for " +
         format_duration(std::chrono::duration_cast<std::chrono::milliseconds>(silence));
}

} // namespace

std::string_view to_string(member_state state) noexcept {
  switch (state) {
  case member_state::alive:
    return "alive";
  case member_state::suspect:
    return "suspect";
  case member_state::dead:
    return "dead";
  case member_state::left:
    return "left";
  }
  return "unknown";
}

std::string_view to_string(member_event::kind what) noexcept {
  switch (what) {
  case kind::joined:
    return "joined";
  case kind::suspected:
    return "suspected";
  case kind::recovered:
    return "recovered";
  case kind::died:
    return "died";
  case kind::left:
    return "left";
  }
  return "unknown";
}

result<std::vector<member_event>> membership::join(member who, time_point now) {
  if (!is_node_id(who.id))
    return fail(errc::invalid_argument, "a node asked to join with an id that is none: 1 to 63 "
                                        "characters out of A-Z a-z 0-9 . _ - are allowed");
  if (who.incarnation == 0 || (!who.roles.controller && !who.roles.worker))
    return fail(errc::invalid_argument,
                "node '" + who.id + "' asked to join without an incarnation or a role");
  std::vector<member_event> events;
  if (auto known = members_.find(who.incarnation); known != members_.end()) {
    auto& old = known->second;
    if (old.id != who.id)
      return fail(errc::invalid_argument, "node '" + who.id + "' asked to join as incarnation " +
                                              format_incarnation(who.incarnation) +
                                              ", which is that of node '" + old.id + '\'');
    if (!old.live())
      return fail(errc::refused,
                  named(old) +
                      (old.state == member_state::dead ? " was declared dead" : " has left") +
                      "; it must end its tasks and join with a new incarnation");
    old.roles = who.roles;
    old.address = std::move(who.address);
    old.capacity = who.capacity;
    if (auto recovered = heard_from(old.incarnation, now); recovered && *recovered)
      events.push_back(std::move(**recovered));
    return events;
  }
  if (auto* holder = holder_of(who.id)) {
    auto place = holder->address.port == 0 ? "" : " at " + to_string(holder->address);
    return fail(errc::already_exists,
                "node id '" + who.id + "' is taken by a live node" + place + " (incarnation " +
                    format_incarnation(holder->incarnation) +
                    "); choose another id, or try again once that node is gone");
  }
  who.state = member_state::alive;
  who.joined = who.last_heard = now;
  who.lease_end = now + limits_.lease;
  holders_.emplace(who.id, who.incarnation);
  auto& stored = members_.emplace(who.incarnation, std::move(who)).first->second;
  events.push_back({kind::joined, stored, {}, {}});
  return events;
}

result<std::optional<member_event>> membership::heard_from(incarnation_id incarnation,
                                                           time_point now) {
  auto* who = find_live(incarnation);
  if (!who) {
    auto* old = find(incarnation);
    auto name = old ? named(*old) : "incarnation " + format_incarnation(incarnation);
    return fail(errc::not_found, name + " is no live member of the cluster");
  }
  who->last_heard = std::max(who->last_heard, now);
  who->lease_end = std::max(who->lease_end, now + limits_.lease);
  std::optional<member_event> event;
  if (who->state == member_state::suspect) {
    who->state = member_state::alive;
    event = member_event{kind::recovered, *who, {}, {}};
  }
  return event;
}

std::vector<member_event> membership::tick(time_point now) {
  std::vector<member_event> events;
  auto before = last_tick_.value_or(now);
  last_tick_ = std::max(before, now);
  if (now - before > limits_.suspect_after) {
    // Silence before the gap counts, the gap itself does not.
    for (auto& [_, who] : members_)
      who.last_heard = std::min(now, who.last_heard + (now - before));
    return events;
  }
  // Departing changes the table of holders.
  auto holders = holders_;
  for (auto& [_, incarnation] : holders) {
    auto& who = members_.at(incarnation);
    auto silence = now - who.last_heard;
    if (who.state == member_state::alive && silence >= limits_.suspect_after) {
      who.state = member_state::suspect;
      events.push_back({kind::suspected, who, silent_for(silence), {}});
    } else if (who.state == member_state::suspect && silence >= limits_.dead_after) {
      events.push_back(depart(who, kind::died, silent_for(silence), lease_over(who, now)));
    }
  }
  return events;
}

std::optional<member_event> membership::lost(incarnation_id incarnation, std::string reason,
                                             bool process_ended, time_point now) {
  auto* who = find_live(incarnation);
  if (!who)
    return std::nullopt;
  auto safe_from = lease_over(*who, now);
  if (process_ended)
    safe_from = std::min(safe_from, now + limits_.kill_margin);
  return depart(*who, kind::died, std::move(reason), safe_from);
}

std::optional<member_event> membership::leave(incarnation_id incarnation, time_point now) {
  auto* who = find_live(incarnation);
  if (!who)
    return std::nullopt;
  return depart(*who, kind::left, {}, now);
}

const member* membership::find(incarnation_id incarnation) const {
  auto found = members_.find(incarnation);
  return found == members_.end() ? nullptr : &found->second;
}

const member* membership::holder_of(std::string_view id) const {
  auto found = holders_.find(id);
  return found == holders_.end() ? nullptr : find(found->second);
}

std::vector<member> membership::members() const {
  std::vector<member> all;
  all.reserve(members_.size());
  for (auto& [_, who] : members_)
    all.push_back(who);
  std::sort(all.begin(), all.end(), [](const member& lhs, const member& rhs) {
    return std::tuple{std::string_view{lhs.id}, lhs.live(), lhs.joined} <
           std::tuple{std::string_view{rhs.id}, rhs.live(), rhs.joined};
  });
  return all;
}

member* membership::find_live(incarnation_id incarnation) {
  auto found = members_.find(incarnation);
  return found == members_.end() || !found->second.live() ? nullptr : &found->second;
}

member::time_point membership::lease_over(const member& who, time_point now) const {
  return std::max<time_point>(now, who.lease_end + limits_.kill_margin);
}

member_event membership::depart(member& who, member_event::kind what, std::string reason,
                                time_point safe_from) {
  who.state = what == kind::left ? member_state::left : member_state::dead;
  holders_.erase(who.id);
  departed_.push_back(who.incarnation);
  member_event event{what, who, std::move(reason), safe_from};
  if (departed_.size() > max_departed) {
    members_.erase(departed_.front());
    departed_.erase(departed_.begin());
  }
  return event;
}

} // namespace troupe
