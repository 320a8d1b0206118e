// The connecting side of set-up on an engine: gets through the listener's gate and gives the pair
// that connects for real. Internal.
#pragma once

#include "troupe/transport/engine.hpp"
#include "troupe/transport/introduction.hpp"

namespace troupe::transport {

/// Event-loop thread only. Lives inside its user.
class dialer final : public connection_handler {
public:
  /// Takes the pair that is being connected: the time to post receives.
  using pair_handler = std::function<status(std::unique_ptr<queue_pair>)>;

  /// `user` handles what becomes of the pair; its `on_closed` is also told what goes wrong before.
  dialer(engine& loop, const endpoint& remote, const connection_terms& ours,
         const queue_pair_config& queues, std::chrono::milliseconds timeout,
         connection_handler& user, pair_handler on_pair);
  ~dialer() override;

  status start();

  /// Checks what the listener said when it accepted on `pair`. @returns its terms.
  result<connection_terms> conclude(byte_view said, const queue_pair& pair) const;

  /// Says why the connection did not come about, see `introduction::explain`.
  error explain(const error& reason, byte_view said) const;

  // -- connection_handler: the pair that only asks
  void on_completion(const completion&) override {}
  void on_established(byte_view private_data) override;
  void on_closed(const error& reason, byte_view private_data) override;

private:
  status ask(const packed_hello& what);
  status connect(const packed_hello& what);
  void let_go();
  void fail_with(const error& reason);
  error about_peer(const error& reason) const;
  std::chrono::milliseconds time_left() const;

  engine& loop_;
  endpoint remote_;
  queue_pair_config queues_;
  engine::clock::time_point deadline_;
  connection_handler& user_;
  pair_handler on_pair_;
  introduction introduction_;
  std::unique_ptr<queue_pair> asking_;
  queue_pair_config asking_queues_;
  error parting_; ///< what to report once the farewell is said
};

} // namespace troupe::transport
