// One slot of a worker's task inbox, as the scheduler writes it by RDMA Write.
//
// A slot is 4096 bytes. It holds who and how much (job, task, attempt, CPUs, memory) and the body
// (argv, env and cwd), or, where the body does not fit, a reference to a block in the scheduler's
// memory that the worker reads. Only the used part needs to be written; a checksum covers it. All
// numbers are little-endian.
#pragma once

#include "troupe/actors/job.hpp"
#include "troupe/transport/bytes.hpp"
#include "troupe/transport/device.hpp"
#include "troupe/transport/error.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::cluster {

constexpr size_t task_slot_bytes = 4096;

/// Most bytes of a body that fit into a slot.
constexpr size_t max_inline_task_body = 4048;

/// Most bytes of any body: `max_command_bytes` with a length in front of each string.
constexpr size_t max_task_body = 5 * max_command_bytes;

/// What a worker needs to know to run a task.
struct task_order {
  job_id job = 0;
  uint32_t task = 0;
  uint32_t attempt = 0; ///< from 1
  uint32_t cpus = 0;
  uint64_t memory = 0; ///< bytes; 0: not limited
  std::vector<std::string> argv;
  std::vector<std::string> env;
  std::string cwd;

  bool operator==(const task_order&) const = default;
};

/// A body that is to be read from the peer.
struct task_block {
  transport::remote_region where;
  uint32_t checksum = 0; ///< CRC-32C

  bool operator==(const task_block&) const = default;
};

/// The body of `order`: its argv, env and cwd as bytes.
std::vector<std::byte> encode_task_body(const task_order& order);

/// Writes `order` into `slot`, with its `body` when that has at most `max_inline_task_body` bytes;
/// else `body` must stay readable at `where` until the task has ended or its worker is gone.
/// @returns how many bytes of `slot` are used; `errc::invalid_argument` when `slot` is smaller than
/// `task_slot_bytes`, or `body` is too long for the slot and `where` is not as long as `body`.
result<size_t> encode_task_slot(const task_order& order, transport::byte_view body,
                                const transport::remote_region& where, transport::byte_span slot);

/// A slot that was read. Unless `body` is set, `order` is complete.
struct received_task {
  task_order order;
  std::optional<task_block> body; ///< to be read and given to `decode_task_body`
};

/// Reads a slot that a peer wrote. `slot` is copied first: the peer may still be writing.
/// @returns `errc::protocol_violation` for bytes that are no sound slot or an order that cannot be
/// run, `errc::version_mismatch`.
result<received_task> decode_task_slot(transport::byte_view slot);

/// Completes `order` from a block that was read by what its slot said. `block` must not change
/// meanwhile.
/// @returns `errc::protocol_violation`; `order` is unchanged then.
status decode_task_body(transport::byte_view block, const task_block& expected, task_order& order);

} // namespace troupe::cluster
