// One-sided operations with one peer, over a queue pair of their own: RDMA Read and Write, write
// with notice, atomics, each with its own answer.
#pragma once

#include "troupe/transport/engine.hpp"
#include "troupe/transport/introduction.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>

namespace troupe::transport {

class dialer;

struct memory_link_options {
  uint32_t operations = 64; ///< in flight at once; more of them wait
  uint32_t notices = 256; ///< receives posted for the peer's notices; further ones wait at the peer
};

/// Event-loop thread only. Operations are carried out in the order of the calls. Local and remote
/// memory must stay valid until an operation's answer.
class memory_link final : public connection_handler {
public:
  /// How an operation ended: `errc::remote_access`, `errc::disconnected`, `errc::flushed` ...
  using answer = std::function<void(const status&)>;

  /// Told to the owner. Each may be empty.
  struct events {
    std::function<void()> opened;
    std::function<void(uint32_t)> notice;     ///< the peer's write with notice has landed
    std::function<void(const error&)> closed; ///< once; all operations were answered before
  };

  /// Starts to connect to a listener that expects `token`.
  static result<std::unique_ptr<memory_link>>
  connect(engine& loop, const endpoint& remote, uint64_t token, const memory_link_options& options,
          std::chrono::milliseconds timeout, events handlers);

  /// Accepts a request, for a connection of kind `memory`, of somebody whom the engine's gate lets
  /// in. When that fails the request is rejected.
  static result<std::unique_ptr<memory_link>> accept(engine& loop, connection_request& request,
                                                     const gate::admission& whom,
                                                     const memory_link_options& options,
                                                     events handlers);

  /// Disconnects; operations that were not answered never will be.
  ~memory_link() override;

  /// Fills `into` from the peer's memory.
  void read(local_slice into, remote_address from, answer done);

  /// Copies `from` into the peer's memory.
  void write(local_slice from, remote_address into, answer done);

  /// Like `write`, and then the peer's owner gets `notice`. A length of 0 only gives notice.
  void write_notify(local_slice from, remote_address into, uint32_t notice, answer done);

  /// Adds `operand` to the peer's 8 bytes at `at`; the old value lands in `old_value` (8 bytes).
  void fetch_add(local_slice old_value, remote_address at, uint64_t operand, answer done);

  /// Stores `desired` at `at` if `expected` stands there; the old value lands in `old_value` (8
  /// bytes).
  void compare_swap(local_slice old_value, remote_address at, uint64_t expected, uint64_t desired,
                    answer done);

  bool is_open() const noexcept { return open_; }
  endpoint peer() const { return pair_ ? pair_->peer() : endpoint{}; }
  std::string path() const { return pair_ ? pair_->path() : std::string{}; }

  // -- connection_handler
  // -----------------------------------------------------------------------------
  void on_completion(const completion& done) override;
  void on_established(byte_view private_data) override;
  void on_closed(const error& reason, byte_view private_data) override;

private:
  struct operation {
    work_request work;
    answer done;
  };

  memory_link(engine& loop, const memory_link_options& options, events handlers);

  status post_notice_receives();
  void submit(const work_request& work, answer done);
  void open_up();
  void pump();
  void end_with(const error& reason);

  engine& loop_;
  memory_link_options options_;
  events handlers_;
  queue_pair_config queues_;
  std::unique_ptr<dialer> dialer_; // connecting side, until the connection stands
  std::unique_ptr<queue_pair> pair_;
  std::deque<operation> waiting_;
  std::unordered_map<uint64_t, answer> in_flight_; // by work id
  uint64_t last_id_ = 0;
  bool connects_ = false;
  bool open_ = false;
  bool ended_ = false;
};

} // namespace troupe::transport
