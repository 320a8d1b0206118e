// The worker's actor: finds the controller, joins, and routes between its memory and its tasks.
// Internal.
#pragma once

#include "troupe/actors/messages.hpp"
#include "troupe/actors/proc_stat.hpp"
#include "troupe/framework/node.hpp"
#include "worker/worker_session.hpp"

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/event_based_actor.hpp>
#include <chrono>
#include <memory>
#include <string>

namespace troupe::cluster {

// Messages to itself; each names the incarnation that it is about.
struct try_to_connect {};
struct sample_figures {};
struct say_goodbye {};
struct link_opened {
  incarnation_id node = 0;
};
struct link_closed {
  incarnation_id node = 0;
  error reason;
};
struct task_assigned {
  incarnation_id node = 0;
  uint32_t slot = 0;
  std::vector<std::byte> record;
};
struct block_read {
  incarnation_id node = 0;
  uint32_t slot = 0;
  received_task task;
  result<std::vector<std::byte>> bytes;
};
struct task_happened {
  incarnation_id node = 0;
  std::shared_ptr<task_event> event;
};

class worker_role {
public:
  worker_role(caf::event_based_actor* self, node& host, transport::endpoint controller);

  caf::behavior make_behavior();

private:
  using clock = std::chrono::steady_clock;

  void connect();
  void retry(const error& why);
  void join(const caf::actor& controller, const transport::endpoint& reached);
  void on_assigned(const task_assigned& what);
  void on_block(block_read& what);
  void on_task_event(const task_happened& what);
  void lost(const error& why);
  void give_up(const error& why);
  void depart();
  void end(caf::error reason);
  void sample();
  caf::result<std::string> command(const std::vector<std::string>& words);
  bool from_controller() const;
  bool current(incarnation_id node) const noexcept {
    return session_ && !leaving_ && node == incarnation_;
  }

  caf::event_based_actor* self_;
  node& host_;
  transport::endpoint where_;
  caf::actor controller_;
  incarnation_id incarnation_ = 0;
  std::unique_ptr<worker_session> session_;
  bool joined_ = false;  // what `session_` is for: its link is open
  bool leaving_ = false; // its tasks are killed, the controller is being told
  host_sampler sampler_;
  clock::time_point searching_since_ = clock::now(); // while there is no link
  std::chrono::milliseconds pause_;                  // before the next attempt
  bool complained_ = false;
};

} // namespace troupe::cluster

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::cluster::try_to_connect)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::cluster::sample_figures)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::cluster::say_goodbye)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::cluster::link_opened)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::cluster::link_closed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::cluster::task_assigned)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::cluster::block_read)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::cluster::task_happened)
