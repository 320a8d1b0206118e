// The controller's front door: keeps the membership, connects workers, and routes requests.
// Internal.
#pragma once

#include "controller/local_messages.hpp"
#include "troupe/actors/id_claims.hpp"
#include "troupe/actors/messages.hpp"
#include "troupe/framework/membership.hpp"
#include "troupe/framework/node.hpp"

#include <caf/event_based_actor.hpp>
#include <caf/response_promise.hpp>
#include <caf/typed_response_promise.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace troupe::cluster {

/// The link of a worker has opened, or closed.
struct port_opened {
  incarnation_id node = 0;
};
struct port_closed {
  incarnation_id node = 0;
  error reason;
  bool process_ended = false;
};
/// The actor of a worker is down.
struct actor_lost {
  incarnation_id node = 0;
};
/// Time to look who has been silent.
struct membership_tick {};
/// Time to end, when the workers have had theirs.
struct end_now {};
/// Where this actor was published.
struct listening_at {
  transport::endpoint where;
};

class controller_front {
public:
  controller_front(caf::event_based_actor* self, node& host, caf::actor scheduler,
                   caf::actor monitor, caf::actor resources);

  caf::behavior make_behavior();

private:
  struct worker {
    std::string id;
    caf::actor handle;
    std::shared_ptr<worker_port> port;
    node_capacity capacity;
    state_snapshot state;
    bool connected = false;
  };

  template <class Request>
  auto to_scheduler(Request& request) {
    return self_->delegate(scheduler_, std::move(request));
  }

  /// Waits for the id that another member holds.
  struct claim {
    join_request request;
    caf::actor sender;
    caf::typed_response_promise<join_accepted> answer;
  };

  caf::result<join_accepted> join(join_request& request);
  result<join_accepted> admit(const join_request& request, const caf::actor& sender);
  void settle(std::vector<claim> claims);
  void on_leaving(const leaving& what);
  void on_opened(const port_opened& what);
  void on_state(const state_seen& what);
  void act_on(const member_event& event);
  void lose(incarnation_id node, const std::string& reason, bool process_ended);
  void forget(const member_event& event);
  void tick();

  caf::result<std::vector<node_summary>> list_nodes();
  std::vector<node_summary> summaries(const books& granted) const;
  caf::result<std::string> command(command_request& request);
  caf::actor find_named(const std::string& name) const;
  std::vector<std::string> names() const;
  void shut_down();
  void end();

  caf::event_based_actor* self_;
  node& host_;
  caf::actor scheduler_;
  caf::actor monitor_;
  std::map<std::string, caf::actor> services_; // by name, but for the workers
  membership members_;
  std::map<incarnation_id, worker> workers_;
  std::map<caf::actor_addr, incarnation_id> handles_;
  id_claims<claim> claims_;
  transport::endpoint listening_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  bool ending_ = false;
};

} // namespace troupe::cluster

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::cluster::port_opened)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::cluster::port_closed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::cluster::actor_lost)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::cluster::membership_tick)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::cluster::end_now)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::cluster::listening_at)
