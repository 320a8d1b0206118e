// Who belongs to the cluster: the table that the controller keeps.
#pragma once

#include "troupe/framework/node_info.hpp"
#include "troupe/transport/endpoint.hpp"
#include "troupe/transport/error.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

enum class member_state : uint8_t {
  alive,
  suspect, ///< silent for a while: gets nothing new, keeps what it has
  dead,    ///< silent for too long, or its connection broke: what it had is lost. Final
  left,    ///< said goodbye. Final
};

/// "alive", "suspect", "dead" or "left".
std::string_view to_string(member_state state) noexcept;

/// One incarnation of a node. Times are the controller's.
struct member {
  using time_point = std::chrono::steady_clock::time_point;

  std::string id;
  incarnation_id incarnation = 0;
  node_roles roles;
  transport::endpoint address; ///< where other nodes reach it
  node_capacity capacity;      ///< of a worker
  member_state state = member_state::alive;
  time_point joined;
  time_point last_heard; ///< moved forward by time in which the controller itself did not run
  time_point lease_end;  ///< its tasks run no longer than this, whatever becomes of it

  bool live() const noexcept {
    return state == member_state::alive || state == member_state::suspect;
  }
};

/// A change that others may act on. `who` is the member after the change.
struct member_event {
  enum class kind : uint8_t { joined, suspected, recovered, died, left };

  kind what = kind::joined;
  member who;
  std::string reason; ///< for people: "silent for 3.1s", "its connection broke"

  /// `died` and `left`: from then on nothing that it ran can still run, so that it may be started
  /// elsewhere.
  member::time_point safe_from;
};

/// "joined", "suspected", "recovered", "died" or "left".
std::string_view to_string(member_event::kind what) noexcept;

/// The membership table. Holds no clock: every call is told the time, which must come from one
/// monotonic clock. One thread.
class membership {
public:
  using time_point = member::time_point;

  struct limits {
    std::chrono::nanoseconds suspect_after{1'500'000'000};
    std::chrono::nanoseconds dead_after{3'000'000'000}; ///< more than `suspect_after`
    /// How long the tasks of a member may run after it was last heard from.
    std::chrono::nanoseconds lease{2'500'000'000};
    /// What killing them may take.
    std::chrono::nanoseconds kill_margin{500'000'000};
  };

  explicit membership(limits bounds) : limits_(bounds) {}

  /// Takes `who` in; its state and times are set here. Joining again while alive is allowed and
  /// counts as being heard from; address and capacity are then updated.
  /// @returns what changed. `errc::already_exists` when another live incarnation holds the id;
  /// `errc::refused` when this incarnation was declared dead or left before: the node must end its
  /// tasks and come back with a new one; `errc::invalid_argument` for an id, incarnation or role
  /// that is none, or an incarnation that another id holds.
  result<std::vector<member_event>> join(member who, time_point now);

  /// Notes a sign of life: a heartbeat, any message, or a fresh state page.
  /// @returns `recovered` when the member was suspect; `errc::not_found` for an incarnation that is
  /// not, or no longer, a live member: what it says must not be used.
  result<std::optional<member_event>> heard_from(incarnation_id incarnation, time_point now);

  /// Moves silent members on: alive to suspect, suspect to dead, at most one step a call. Call it
  /// several times per `suspect_after`. A call that comes later than that after the one before
  /// means that the controller was stopped: the time since does not count as silence, and nobody is
  /// moved until the next call, so that messages which waited meanwhile are heard first.
  std::vector<member_event> tick(time_point now);

  /// The member's connection broke: it is dead at once. `process_ended`: it is known that its
  /// process is gone, with which its tasks are killed; else they may run until their lease ends.
  /// @returns nothing when it was no live member.
  std::optional<member_event> lost(incarnation_id incarnation, std::string reason,
                                   bool process_ended, time_point now);

  /// The member said goodbye, when its tasks were gone.
  /// @returns nothing when it was no live member.
  std::optional<member_event> leave(incarnation_id incarnation, time_point now);

  /// The member of that incarnation, live or remembered; null when there is none. Valid until the
  /// next call that changes the table.
  const member* find(incarnation_id incarnation) const;

  /// The live member that holds `id`, or null; valid likewise.
  const member* holder_of(std::string_view id) const;

  /// Live members, and the last `max_departed` that died or left; sorted by id, of one id the live
  /// one last.
  std::vector<member> members() const;

  size_t live_count() const noexcept { return holders_.size(); }

  /// Departed members that are remembered, so that they can be shown and told why they are refused.
  static constexpr size_t max_departed = 1024;

private:
  member* find_live(incarnation_id incarnation);
  member_event depart(member& who, member_event::kind what, std::string reason,
                      time_point safe_from);
  time_point lease_over(const member& who, time_point now) const;

  limits limits_;
  std::map<incarnation_id, member> members_;
  std::map<std::string, incarnation_id, std::less<>> holders_; ///< id to live incarnation
  std::vector<incarnation_id> departed_;                       ///< oldest first
  std::optional<time_point> last_tick_;
};

} // namespace troupe
