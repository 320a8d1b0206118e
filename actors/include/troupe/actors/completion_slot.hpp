// One slot of the scheduler's completion ring, as a worker writes it by RDMA Write.
//
// A slot is 4096 bytes. It tells how a task ended and what it wrote: the bytes themselves when both
// outputs fit, else where in the worker's memory the scheduler reads them. Only the used part needs
// to be written; a checksum covers it. All numbers are little-endian.
#pragma once

#include "troupe/actors/job.hpp"
#include "troupe/transport/bytes.hpp"
#include "troupe/transport/device.hpp"
#include "troupe/transport/error.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace troupe::cluster {

constexpr size_t completion_slot_bytes = 4096;

/// Most bytes of a failure's text that are kept.
constexpr size_t max_failure_bytes = 512;

/// Most bytes of both outputs together that fit into a slot, whatever the failure's text.
constexpr size_t max_inline_output = 3516;

/// What a task wrote, byte for byte.
struct inline_output {
  std::vector<std::byte> standard_output;
  std::vector<std::byte> standard_error;

  bool operator==(const inline_output&) const = default;
};

/// Where to read what a task wrote. A region of length 0 means that it wrote nothing there.
struct remote_output {
  transport::remote_region standard_output;
  transport::remote_region standard_error;

  bool operator==(const remote_output&) const = default;
};

/// The end of one attempt of a task.
struct task_completion {
  job_id job = 0;
  uint32_t task = 0;
  uint32_t attempt = 0;
  int32_t exit_code = 0;               ///< 0 to 255; -1 when it did not exit by itself
  int32_t signal = 0;                  ///< that ended it, up to 127; else 0
  std::string failure;                 ///< why it could not be run; empty when it was
  std::chrono::nanoseconds started{0}; ///< by the worker's monotonic clock
  std::chrono::nanoseconds ended{0};   ///< likewise, not before `started`
  std::variant<inline_output, remote_output> output;

  bool operator==(const task_completion&) const = default;

  uint64_t stdout_bytes() const noexcept;
  uint64_t stderr_bytes() const noexcept;

  /// As the scheduler records it.
  task_outcome outcome() const;
};

/// Writes `end` into `slot`. A failure's text is cut to `max_failure_bytes`.
/// @returns how many bytes of `slot` are used; `errc::invalid_argument` when `slot` is smaller than
/// `completion_slot_bytes` or inline output exceeds `max_inline_output`.
result<size_t> encode_completion_slot(const task_completion& end, transport::byte_span slot);

/// Reads a slot that a peer wrote. `slot` is copied first: the peer may still be writing.
/// @returns `errc::protocol_violation` for bytes that are no sound slot, or values out of range;
/// `errc::version_mismatch`.
result<task_completion> decode_completion_slot(transport::byte_view slot);

} // namespace troupe::cluster
