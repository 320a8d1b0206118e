// The device contract: reliable-connected verbs, small, and the same for an RDMA adapter ("verbs")
// and for machines that have none ("soft").
//
// Semantics are those of verbs (InfiniBand Architecture Specification, volume 1, chapter 10; RFC
// 5040 for iWARP):
//  - work on one queue pair is carried out in the order it was posted;
//  - a send, or a write with immediate, waits for a posted receive. iWARP knows no such wait: there
//    the connection breaks, so a sender must know that the receive is posted;
//  - a wrong key, a missing right or an address outside the region fails that operation with
//    `errc::remote_access` and moves the pair to the error state. A device whose adapter reports
//    such an error late (iWARP) completes the write and breaks the connection after it;
//  - in the error state all outstanding work completes with `errc::flushed`; none is dropped.
//
// Threads: everything here belongs to one thread, the event loop's, unless a declaration says "any
// thread". Nothing here blocks.
//
// Children: `posix_spawn` at any time. A child of `fork` has its own copy of ordinary memory,
// registered or not, and none of the memory of `allocate`; it must not use anything made here, and
// ends by `exec` or `_exit`.
#pragma once

#include "troupe/transport/bytes.hpp"
#include "troupe/transport/endpoint.hpp"
#include "troupe/transport/error.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe::transport {

class completion_queue;
class listener;
class queue_pair;

// -- memory
// -------------------------------------------------------------------------------------------

/// What a peer may do to a region, and what else it is for. The local processor, receives, and
/// being the source of sends and writes are always allowed.
enum class access : uint8_t {
  local = 0,
  remote_read = 1,
  remote_write = 2,
  remote_atomic = 4,
  /// Destination of our own reads. A right of its own because iWARP adapters want such memory
  /// remotely writable: there the answer to a read is a write of the peer (RFC 5040, 4.3).
  read_sink = 8,
};

constexpr access operator|(access lhs, access rhs) {
  return static_cast<access>(static_cast<uint8_t>(lhs) | static_cast<uint8_t>(rhs));
}

/// Whether `held` includes every right in `asked`.
constexpr bool allows(access held, access asked) {
  return (static_cast<uint8_t>(held) & static_cast<uint8_t>(asked)) == static_cast<uint8_t>(asked);
}

/// Memory of a peer, as it is named on the wire. Never dereferenced here.
struct remote_region {
  uint64_t address = 0; ///< of the first byte, in the peer's address space
  uint64_t length = 0;  ///< bytes
  uint32_t key = 0;     ///< the peer's remote key

  bool operator==(const remote_region&) const = default;
};

/// Local memory that the device may use; deregistered, and its remote key revoked, when destroyed.
/// Destroy it only when no posted work uses it. Any thread.
class memory_region {
public:
  virtual ~memory_region() = default;

  virtual std::byte* data() const noexcept = 0;
  virtual size_t size() const noexcept = 0; ///< bytes
  virtual access rights() const noexcept = 0;

  /// Names the open device that it is registered with: only to be compared.
  virtual const void* home() const noexcept = 0;

  /// What a peer needs to reach this memory. Its rights still apply.
  virtual remote_region remote() const noexcept = 0;

  byte_span bytes() const noexcept { return {data(), size()}; }
};

/// A part of a local region: `length` bytes from `offset`. A default-made slice is empty and needs
/// no region. The region must outlive the work that names it.
struct local_slice {
  const memory_region* region = nullptr;
  size_t offset = 0;
  size_t length = 0;
};

/// Where a one-sided operation starts in the peer's memory; its length is the local slice's.
struct remote_address {
  uint64_t address = 0;
  uint32_t key = 0;
};

// -- work
// ---------------------------------------------------------------------------------------------

enum class opcode : uint8_t {
  send,         ///< into the peer's next posted receive
  receive,      ///< completions only
  write,        ///< RDMA Write
  write_notify, ///< RDMA Write with immediate: consumes a posted receive, which gets `immediate`
  read,         ///< RDMA Read
  fetch_add,    ///< 8 bytes, remote address aligned to 8; the old value lands in `local`
  compare_swap, ///< likewise
};

std::string_view to_string(opcode op) noexcept;

/// One entry of a send queue.
struct work_request {
  opcode op = opcode::send;
  uint64_t id = 0;        ///< handed back in the completion
  local_slice local;      ///< source, or destination of read and atomics
  remote_address remote;  ///< one-sided operations
  uint32_t immediate = 0; ///< write_notify
  uint64_t operand = 0;   ///< fetch_add: what to add; compare_swap: what to expect
  uint64_t swap = 0;      ///< compare_swap: what to store
  bool signaled = true;   ///< whether success is reported; failure always is
  bool inlined = false;   ///< copy `local` before `post` returns (at most `limits::max_inline`)
};

/// The end of one piece of work.
struct completion {
  uint64_t id = 0;
  queue_pair* pair = nullptr;
  opcode op = opcode::send;
  errc status = errc::none; ///< none, local_length, remote_access, flushed, disconnected or system
  size_t length = 0;        ///< receive: bytes received, or written by the peer's write_notify
  bool has_immediate = false; ///< receive that a write_notify consumed
  uint32_t immediate = 0;
};

// -- queue pairs and completion queues
// ------------------------------------------------------------------

/// Where the ends of work arrive. Must outlive the queue pairs that use it.
class completion_queue {
public:
  virtual ~completion_queue() = default;

  /// Takes up to `out.size()` completions. For a soft device this also moves the data.
  /// @returns how many were written to `out`; 0 when there are none now.
  virtual size_t poll(std::span<completion> out) = 0;

  /// Asks that `fd()` become readable when the next completion arrives. Completions that arrived
  /// before this call may not be announced: poll once more after it, before sleeping.
  virtual void arm() = 0;

  /// Consumes the announcement after `fd()` became readable. Harmless otherwise.
  virtual void acknowledge() = 0;

  /// To be watched for input by poll or epoll. Owned by the queue.
  virtual int fd() const noexcept = 0;
};

/// Sizes of a queue pair's queues, in work requests.
struct queue_pair_config {
  completion_queue* completions = nullptr; ///< of the same device
  uint32_t send_depth = 128;
  uint32_t receive_depth = 128;

  /// False: the pair serves set-up only, for the private data that is exchanged then. Nothing may
  /// be posted, and the peer can reach none of this device's memory through it, whatever key it
  /// has.
  bool one_sided = true;
};

/// A reliable connection. Destroying it disconnects; work that is still posted is gone without a
/// completion, and no later event or completion names this pair.
class queue_pair {
public:
  virtual ~queue_pair() = default;

  /// Posts a buffer for one incoming send or notification (which needs no bytes). Allowed from
  /// creation on, before the connection is established.
  /// @returns `errc::no_resources` when the receive queue is full, `errc::invalid_argument` for a
  /// slice outside its region or a region of another device.
  [[nodiscard]] virtual status post_receive(uint64_t id, local_slice buffer) = 0;

  /// Posts `work` as one batch (one doorbell). Allowed once established or once a message has come.
  /// @returns `errc::no_resources` when not all of it fits into the send queue, `errc::unsupported`
  /// for atomics on a device without, `errc::invalid_argument` for a length above
  /// `limits::max_message`, a slice outside its region, a region of another device, or a read into
  /// one without `access::read_sink`: then nothing was posted.
  [[nodiscard]] virtual status post(std::span<const work_request> work) = 0;

  [[nodiscard]] status post(const work_request& work) { return post(std::span{&work, 1}); }

  /// Starts an orderly disconnect: both sides get `connection_event::disconnected`, and posted work
  /// is flushed. Harmless when already disconnected.
  virtual void disconnect() = 0;

  /// The peer's address, for messages to people; empty before the connection is established.
  virtual endpoint peer() const = 0;

  /// Which path carries this pair: "shared memory", "tcp", or the name of an adapter.
  virtual std::string path() const = 0;

  /// Whether the system vouches that the peer is a process of this user, or of root, on this
  /// machine. Asks the system: for set-up only, once established.
  virtual bool same_user() const = 0;

  /// Free for the owner: points at whatever handles this pair's completions and events.
  void* owner = nullptr;
};

// -- connections
// ----------------------------------------------------------------------------------------

/// Most bytes of private data that `connect`, `accept` and `reject` carry.
constexpr size_t max_private_data = 48;

/// A connection that a peer asked for. Accept or reject it; destroying it rejects.
class connection_request {
public:
  virtual ~connection_request() = default;

  /// What the peer gave to `connect`. Untrusted; may be followed by zero bytes that the device
  /// added.
  virtual byte_view private_data() const = 0;
  virtual endpoint peer() const = 0;

  /// As `queue_pair::same_user`.
  virtual bool same_user() const = 0;

  /// Accepts. The pair is usable for `post_receive` at once, for `post` after
  /// `connection_event::established`.
  virtual result<std::unique_ptr<queue_pair>> accept(const queue_pair_config& config,
                                                     byte_view private_data) = 0;
  virtual void reject(byte_view private_data) = 0;
};

struct connection_event {
  enum class kind : uint8_t {
    requested,    ///< `source` and `request` are set
    established,  ///< `pair` is set; on the connecting side `private_data` is what `accept` gave
    failed,       ///< `connect` did not succeed: `pair`, `reason`; when refused, `private_data` of
                  ///< `reject`
    disconnected, ///< the peer closed or died: `pair`, `reason`
  };
  kind what = kind::requested;
  listener* source = nullptr;
  queue_pair* pair = nullptr;
  std::unique_ptr<connection_request> request;
  std::vector<std::byte> private_data; ///< untrusted
  error reason;
};

/// Listens until destroyed. Accepted connections live on.
class listener {
public:
  virtual ~listener() = default;

  /// The address it listens on, with the port that the system chose when 0 was asked for.
  virtual endpoint local() const = 0;

  /// Free for the owner.
  void* owner = nullptr;
};

// -- device
// ---------------------------------------------------------------------------------------------

struct device_limits {
  uint64_t max_message = 0;     ///< bytes of one send, read or write
  uint32_t max_inline = 0;      ///< bytes
  uint32_t max_depth = 0;       ///< work requests per queue
  uint32_t max_completions = 0; ///< entries of a completion queue
  uint32_t max_reads = 0;       ///< reads and atomics in flight on a queue pair
  bool atomics = false;
  bool native_immediate = false; ///< false: write_notify is emulated by a write and a send
};

class device {
public:
  virtual ~device() = default;

  virtual const std::string& name() const noexcept = 0; ///< "soft", "rxe0", "mlx5_0" ...
  virtual const device_limits& limits() const noexcept = 0;

  /// Page-aligned, zeroed memory of at least `size` bytes (not 0), registered with `rights`. The
  /// fastest kind for peers to reach. Any thread.
  /// @returns `errc::limit_too_low` with the remedy when RLIMIT_MEMLOCK forbids it.
  virtual result<std::unique_ptr<memory_region>> allocate(size_t size, access rights) = 0;

  /// Registers memory that the caller owns and keeps alive for as long as the region. Any thread.
  virtual result<std::unique_ptr<memory_region>> register_memory(byte_span memory,
                                                                 access rights) = 0;

  /// Makes a completion queue of at least `depth` entries.
  virtual result<std::unique_ptr<completion_queue>> create_completion_queue(uint32_t depth) = 0;

  /// @returns `errc::address_in_use`, `errc::cannot_resolve`, `errc::permission_denied` ...
  virtual result<std::unique_ptr<listener>> listen(const endpoint& local) = 0;

  /// Starts to connect to a numeric address; `connection_event` tells how it ended, at the latest
  /// after `timeout`.
  virtual result<std::unique_ptr<queue_pair>> connect(const endpoint& remote,
                                                      const queue_pair_config& config,
                                                      byte_view private_data,
                                                      std::chrono::milliseconds timeout) = 0;

  /// To be watched for input: connection events wait, or set-up has work to do. Owned by the
  /// device.
  virtual int event_fd() const noexcept = 0;

  /// Advances connection set-up and takes the next event, if any. Events that concern destroyed
  /// pairs or listeners are never returned.
  virtual std::optional<connection_event> next_event() = 0;
};

} // namespace troupe::transport
