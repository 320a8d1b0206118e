// A worker as the controller reaches it by one-sided operations: tasks go out by RDMA Write with
// notice, their ends come in the same way, the state page and long outputs are read by RDMA Read.
// Internal.
#pragma once

#include "troupe/actors/messages.hpp"
#include "troupe/transport/bytes.hpp"
#include "troupe/transport/memory_service.hpp"
#include "troupe/transport/middleman.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace troupe::cluster {

/// The handlers are called on the loop thread: they only pass on. Everything else is called from
/// any thread, and does its work on the loop thread.
class worker_port : public std::enable_shared_from_this<worker_port> {
public:
  struct events {
    std::function<void()> opened;
    std::function<void(uint32_t slot, std::vector<std::byte> record)> finished;
    /// Once; nothing comes after it. `process_ended`: the worker's process is known to be gone, or
    /// to have closed the link, which it does when its tasks are gone.
    std::function<void(const error&, bool process_ended)> closed;
  };

  /// Prepares memory for a worker with `slots` slots, and expects its link (see `token`).
  static result<std::shared_ptr<worker_port>>
  create(transport::middleman& network, const exposed_region& inbox, const exposed_region& state,
         const exposed_region& lease, uint32_t slots, events handlers);

  /// What the worker's memory link must present.
  uint64_t token() const noexcept { return token_; }

  /// Where the worker writes the ends of its tasks: one record for each slot.
  exposed_region completions() const;

  /// Writes `record` (one slot long) into the worker's inbox and gives notice. A failure closes the
  /// port.
  void assign(uint32_t slot, std::vector<std::byte> record);

  /// Lets the worker read `block` until the slot is released.
  result<exposed_region> expose(uint32_t slot, std::vector<std::byte> block);

  /// Takes back what `expose` gave.
  void release(uint32_t slot);

  using bytes_handler = std::function<void(result<std::vector<std::byte>>)>;

  /// Reads the worker's state page. `done` is called on the loop thread.
  void read_state(bytes_handler done);

  /// Tells the worker that its epoch was seen (see task_lease.hpp). A failure closes the port.
  void renew_lease(uint64_t epoch);

  /// Reads `length` bytes of the worker's memory (at most `most_read`). `done` is called on the
  /// loop thread.
  void read(const exposed_region& from, uint64_t offset, uint64_t length, bytes_handler done);
  static constexpr uint64_t most_read = 1024 * 1024;

  /// Closes the link; `closed` is not called for it.
  void close();

  /// Which path the link takes, for people.
  std::string path() const;

private:
  worker_port(transport::middleman& network, const exposed_region& inbox,
              const exposed_region& state, const exposed_region& lease, uint32_t slots);

  void on_link(transport::link_ptr link);
  void on_notice(uint32_t slot);
  void check(const status& done);
  void fail_link(const error& reason);

  transport::middleman& network_;
  exposed_region inbox_;
  exposed_region state_;
  exposed_region lease_;
  uint32_t slots_;
  uint64_t token_ = 0;
  std::unique_ptr<transport::memory_region> completions_;
  std::unique_ptr<transport::memory_region> outgoing_; // a record a slot, while it is being written
  std::unique_ptr<transport::memory_region> page_;     // the copy of the state page
  std::unique_ptr<transport::memory_region> seen_;     // the epoch, while it is being written

  // loop thread
  events handlers_;
  transport::link_ptr link_;
  bool closed_ = false;
  bool reading_state_ = false;
  bool renewing_ = false;

  mutable std::mutex guard_; // for what follows
  std::string path_;
  struct exposed_block {
    std::vector<std::byte> bytes;
    std::unique_ptr<transport::memory_region> region;
  };
  std::unordered_map<uint32_t, exposed_block> blocks_;
};

} // namespace troupe::cluster
