// What nodes tell each other about themselves.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// One run of a node: random, not 0. A node that was restarted is a new incarnation, also at the
/// same address.
using incarnation_id = uint64_t;

/// Draws an incarnation from the system's random numbers. Any thread.
incarnation_id make_incarnation();

/// `value` as 16 hexadecimal digits, as people and logs see it.
std::string format_incarnation(incarnation_id value);

/// Whether `text` may be a node's id: 1 to 63 characters out of A-Z a-z 0-9 . _ -
bool is_node_id(std::string_view text) noexcept;

/// What a node does in the cluster; a node may do both.
struct node_roles {
  bool controller = true;
  bool worker = true;

  bool operator==(const node_roles&) const = default;
};

/// "controller,worker", "controller", "worker" or "".
std::string to_string(node_roles roles);

/// What a worker offers to tasks.
struct node_capacity {
  uint32_t cpus = 0;
  uint64_t memory = 0; ///< bytes
  uint32_t slots = 0;  ///< tasks in flight

  bool operator==(const node_capacity&) const = default;
};

} // namespace troupe
