// What a task runner and its guardian say to each other over one SOCK_SEQPACKET socket. Both are of
// the same build and on the same machine, so messages are plain structures; the guardian
// links nothing of Troupe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe::cluster::guardian {

/// Arguments and environment up to this many bytes travel in the message itself, longer ones in a
/// sealed memory file.
constexpr size_t max_inline_body = 16 * 1024;

/// The longest arguments and environment that are passed on at all; the kernel's own limit, which
/// is usually 2 MiB and reported as E2BIG, lies far below.
constexpr size_t max_body = 64 * 1024 * 1024;

enum class request_kind : uint32_t {
  start = 1,  ///< header, body; descriptors: stdout, stderr and, for a long body, the memory file
  signal = 2, ///< header only
  extend = 3, ///< header only, without `id`: let the tasks run until `lease_end_ns`
};

/// Precedes every request. The body of a start is `strings` zero-terminated strings: the working
/// directory (empty: the guardian's own), `arguments` arguments (at least one), and the entries of
/// the environment.
struct request_header {
  request_kind kind = request_kind::start;
  int32_t signal = 0; ///< request_kind::signal: its number
  uint64_t id = 0;
  uint32_t strings = 0;
  uint32_t arguments = 0;
  uint64_t body_length = 0;  ///< bytes
  uint64_t lease_end_ns = 0; ///< request_kind::extend: CLOCK_BOOTTIME
};

enum class reply_kind : uint32_t {
  started = 1,     ///< `process` and `start_ns` are set
  failed = 2,      ///< the task never ran: `step` and `error_number` are set
  ended = 3,       ///< everything from `value` on is set
  lease_ended = 4, ///< of no task: all are being killed, the guardian ends when they are gone
};

/// What failed to start a task.
enum class start_step : uint32_t {
  request = 1,   ///< the request was malformed
  fork = 2,      ///< no further process
  output = 3,    ///< connecting stdout and stderr
  directory = 4, ///< changing to the working directory
  execute = 5,   ///< finding or executing the program
};

enum class end_kind : uint32_t {
  exited = 1,   ///< `value` is the exit code
  signalled = 2 ///< `value` is the signal
};

struct reply {
  reply_kind kind = reply_kind::started;
  start_step step = start_step::request;
  uint64_t id = 0;
  int32_t error_number = 0;
  int32_t process = 0; ///< leader, and number of the task's process group
  end_kind end = end_kind::exited;
  int32_t value = 0;
  uint64_t user_ns = 0;      ///< of all the task's processes that were waited for
  uint64_t system_ns = 0;    ///< likewise
  uint64_t max_resident = 0; ///< bytes, of the largest process
  uint64_t start_ns = 0;     ///< CLOCK_MONOTONIC
  uint64_t end_ns = 0;       ///< CLOCK_MONOTONIC
  uint32_t lingering = 0;    ///< 1: some of its processes could not be killed yet
  uint32_t reserved = 0;
};

} // namespace troupe::cluster::guardian
