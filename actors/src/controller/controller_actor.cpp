#include "controller/controller_actor.hpp"

#include "troupe/framework/errors.hpp"
#include "troupe/framework/suggest.hpp"
#include "troupe/transport/log.hpp"
#include "troupe/version.hpp"

#include <algorithm>
#include <caf/exit_reason.hpp>
#include <caf/send.hpp>
#include <set>
#include <utility>

namespace troupe::cluster {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::chrono::seconds command_deadline{10};
constexpr std::chrono::milliseconds farewell{500}; // for the last messages to leave
constexpr uint32_t most_slots = 256;

// When a process dies, its actor and its memory link are lost; the link tells more about it.
constexpr std::chrono::milliseconds link_first{200};

uint64_t milliseconds_since(clock::time_point then) {
  auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - then).count();
  return passed > 0 ? static_cast<uint64_t>(passed) : 0;
}

std::vector<std::string> role_names(node_roles roles) {
  std::vector<std::string> out;
  if (roles.controller)
    out.emplace_back("controller");
  if (roles.worker)
    out.emplace_back("worker");
  return out;
}

node_roles roles_of(const std::vector<std::string>& names) {
  auto has = [&](const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  return {has("controller"), has("worker")};
}

} // namespace

controller_front::controller_front(caf::event_based_actor* self, node& host, caf::actor scheduler,
                                   caf::actor monitor, caf::actor resources)
    : self_(self), host_(host), scheduler_(scheduler),
      monitor_(monitor), services_{{"scheduler", scheduler},
                                   {"monitor", monitor},
                                   {"resources", std::move(resources)}},
      members_({host.config().membership.suspect_after, host.config().membership.dead_after,
                host.config().membership.lease}),
      listening_(host.config().node.listen) {}

caf::behavior controller_front::make_behavior() {
  for (auto& [name, service] : services_)
    self_->link_to(service);
  self_->set_down_handler([this](const caf::down_msg& down) {
    if (auto found = handles_.find(down.source); found != handles_.end())
      self_->delayed_send(self_, link_first, actor_lost{found->second});
  });
  self_->delayed_send(self_, host_.config().membership.heartbeat, membership_tick{});
  return {
      // -- from workers
      [this](join_request& request) { return join(request); },
      [this](const leaving& what) { on_leaving(what); },
      // -- from the command line; the scheduler answers in our place
      [this](submit_request& request) { return to_scheduler(request); },
      [this](list_jobs_request& request) { return to_scheduler(request); },
      [this](job_request& request) { return to_scheduler(request); },
      [this](wait_request& request) { return to_scheduler(request); },
      [this](output_request& request) { return to_scheduler(request); },
      [this](cancel_request& request) { return to_scheduler(request); },
      [this](info_request) {
        auto& network = host_.network();
        return cluster_info{std::string{version()}, host_.config().node.id, network.device_name(),
                            network.device_choice(), milliseconds_since(started_)};
      },
      [this](list_nodes_request) { return list_nodes(); },
      [this](command_request& request) { return command(request); },
      [this](list_actors_request) { return names(); },
      [this](shutdown_request) { shut_down(); },
      // -- from within
      [this](const port_opened& what) { on_opened(what); },
      [this](const port_closed& what) { lose(what.node, what.reason.text(), what.process_ended); },
      [this](const actor_lost& what) { lose(what.node, "its connection broke", false); },
      [this](const state_seen& what) { on_state(what); },
      [this](membership_tick) { tick(); },
      [this](listening_at& what) { listening_ = std::move(what.where); },
      [this](end_now) { end(); },
  };
}

// -- workers
// ------------------------------------------------------------------------------------------------

caf::result<join_accepted> controller_front::join(join_request& request) {
  auto sender = caf::actor_cast<caf::actor>(self_->current_sender());
  if (ending_ || !sender)
    return to_caf({errc::refused, "the cluster is shutting down"});
  if (request.slots == 0 || request.slots > most_slots)
    return to_caf({errc::invalid_argument, "a worker has 1 to " + std::to_string(most_slots) +
                                               " slots, not " + std::to_string(request.slots)});
  claims_.drop([&](const claim& older) { return older.sender == sender; });
  auto holder = members_.holder_of(request.id);
  if (holder && holder->incarnation != request.incarnation) {
    auto answer = self_->make_response_promise<join_accepted>();
    claims_.add(holder->incarnation, {std::move(request), std::move(sender), answer});
    return answer;
  }
  auto accepted = admit(request, sender);
  if (!accepted)
    return to_caf(accepted.error());
  return std::move(*accepted);
}

/// Decides on claims for an id whose holder is gone, or lives.
void controller_front::settle(std::vector<claim> claims) {
  for (auto& it : claims) {
    if (auto accepted = admit(it.request, it.sender))
      it.answer.deliver(std::move(*accepted));
    else
      it.answer.deliver(to_caf(accepted.error()));
  }
}

result<join_accepted> controller_front::admit(const join_request& request,
                                              const caf::actor& sender) {
  member who;
  who.id = request.id;
  who.incarnation = request.incarnation;
  who.roles = roles_of(request.roles);
  who.capacity = {request.cpus, request.memory, request.slots};
  if (auto address = transport::parse_endpoint(request.address))
    who.address = *address;
  if (workers_.contains(request.incarnation))
    return fail(errc::already_exists, "this incarnation of " + request.id + " has joined already");
  auto joined = members_.join(std::move(who), clock::now());
  if (!joined)
    return fail(joined.error());
  auto me = caf::actor_cast<caf::actor>(self_);
  auto node = request.incarnation;
  worker_port::events events;
  events.opened = [me, node] { caf::anon_send(me, port_opened{node}); };
  events.closed = [me, node](const error& reason, bool process_ended) {
    caf::anon_send(me, port_closed{node, reason, process_ended});
  };
  events.finished = [to = scheduler_, node](uint32_t slot, std::vector<std::byte> record) {
    caf::anon_send(to, slot_finished{node, slot, std::move(record)});
  };
  auto port = worker_port::create(host_.network(), request.inbox, request.state, request.lease,
                                  request.slots, std::move(events));
  if (!port) {
    members_.lost(node, port.error().text(), true, clock::now());
    return fail(port.error());
  }
  self_->monitor(sender);
  handles_.emplace(sender.address(), node);
  workers_.emplace(
      node,
      worker{request.id, sender, *port, {request.cpus, request.memory, request.slots}, {}, false});
  for (auto& event : *joined)
    act_on(event);
  auto& config = host_.config();
  return join_accepted{(*port)->token(), (*port)->completions(), config.node.id,
                       static_cast<uint64_t>(config.membership.heartbeat.count()),
                       static_cast<uint64_t>(config.membership.lease.count())};
}

void controller_front::on_leaving(const leaving& what) {
  auto found = workers_.find(what.incarnation);
  if (found == workers_.end() ||
      found->second.handle != caf::actor_cast<caf::actor>(self_->current_sender()))
    return;
  if (auto event = members_.leave(what.incarnation, clock::now()))
    act_on(*event);
}

void controller_front::on_opened(const port_opened& what) {
  auto found = workers_.find(what.node);
  if (found == workers_.end())
    return;
  // The first lease of its tasks began before it opened the link.
  if (!members_.heard_from(what.node, clock::now()))
    return;
  auto& it = found->second;
  it.connected = true;
  log_for("membership")->info("worker {} has joined over {}", it.id, it.port->path());
  worker_added added{what.node, it.id, it.capacity, it.port, it.handle};
  self_->send(monitor_, added);
  self_->send(scheduler_, std::move(added));
}

void controller_front::on_state(const state_seen& what) {
  auto found = workers_.find(what.node);
  if (found == workers_.end())
    return;
  found->second.state = what.state;
  if (!what.fresh)
    return; // it could be read, but its loop stands still: no sign of life
  auto heard = members_.heard_from(what.node, clock::now());
  if (!heard)
    return;
  found->second.port->renew_lease(what.state.epoch);
  if (*heard)
    act_on(**heard);
  settle(claims_.heard(what.node));
}

void controller_front::tick() {
  for (auto& event : members_.tick(clock::now()))
    act_on(event);
  // Several looks per `suspect_after`, as the membership table wants them.
  auto pace =
      std::min(host_.config().membership.heartbeat, host_.config().membership.suspect_after / 4);
  self_->delayed_send(self_, std::max(pace, std::chrono::milliseconds{10}), membership_tick{});
}

void controller_front::act_on(const member_event& event) {
  using kind = member_event::kind;
  auto node = event.who.incarnation;
  switch (event.what) {
  case kind::joined:
    break;
  case kind::suspected:
  case kind::recovered:
    log_for("membership")
        ->warn("worker {} {}: {}", event.who.id, to_string(event.what), event.reason);
    self_->send(scheduler_, worker_accepting{node, event.what == kind::recovered});
    break;
  case kind::died:
    log_for("membership")->warn("worker {} died: {}", event.who.id, event.reason);
    forget(event);
    break;
  case kind::left:
    log_for("membership")->info("worker {} left", event.who.id);
    forget(event);
    break;
  }
}

void controller_front::lose(incarnation_id node, const std::string& reason, bool process_ended) {
  if (ending_)
    return; // as they were told to
  if (auto event = members_.lost(node, reason, process_ended, clock::now()))
    act_on(*event);
}

/// Cuts the connection with a worker that is dead or has left, and gives its tasks back when they
/// run no more.
void controller_front::forget(const member_event& event) {
  auto node = event.who.incarnation;
  auto found = workers_.find(node);
  if (found == workers_.end())
    return;
  auto gone = std::move(found->second);
  workers_.erase(found);
  handles_.erase(gone.handle.address());
  self_->demonitor(gone.handle);
  auto died = event.what == member_event::kind::died;
  // If it only was silent it learns of it when it wakes: the link is gone, and this arrives.
  if (died)
    self_->send(gone.handle, declared_dead{node, event.reason});
  gone.port->close();
  worker_removed removed{node, died ? departure::died : departure::left, event.reason};
  self_->send(monitor_, removed);
  self_->send(scheduler_, worker_accepting{node, false});
  auto wait = std::max(event.safe_from - clock::now(), clock::duration::zero());
  self_->delayed_send(scheduler_, wait, std::move(removed));
  settle(claims_.gone(node));
}

// -- requests of the command line
// -----------------------------------------------------------------------------

caf::result<std::vector<node_summary>> controller_front::list_nodes() {
  auto promise = self_->make_response_promise<std::vector<node_summary>>();
  self_->request(scheduler_, command_deadline, books_request{})
      .then([this, promise](const books& granted) mutable { promise.deliver(summaries(granted)); },
            [promise](caf::error& e) mutable { promise.deliver(std::move(e)); });
  return promise;
}

std::vector<node_summary> controller_front::summaries(const books& granted) const {
  std::vector<node_summary> out;
  if (!host_.config().node.roles.worker) {
    node_summary own;
    own.id = host_.config().node.id;
    own.roles = {"controller"};
    own.state = "alive";
    own.address = to_string(listening_);
    out.push_back(std::move(own));
  }
  for (auto& who : members_.members()) {
    node_summary it;
    it.id = who.id;
    it.incarnation = who.incarnation;
    it.roles = role_names(who.roles);
    it.state = to_string(who.state);
    if (who.address.port != 0)
      it.address = to_string(who.address);
    it.cpus = who.capacity.cpus;
    it.memory = who.capacity.memory;
    it.heard_ms_ago = milliseconds_since(who.last_heard);
    if (auto found = workers_.find(who.incarnation); found != workers_.end()) {
      auto& state = found->second.state;
      it.path = found->second.port->path();
      it.epoch = state.epoch;
      it.finished = state.finished_tasks;
      it.cpu_busy_permille = state.cpu_busy_permille;
      it.memory_available = state.memory_available;
    }
    if (auto page = granted.nodes.find(who.incarnation); page != granted.nodes.end()) {
      it.cpus_granted = page->second.account.granted.cpus;
      it.memory_granted = page->second.account.granted.memory;
      it.running = page->second.running;
    }
    out.push_back(std::move(it));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const node_summary& a, const node_summary& b) { return a.id < b.id; });
  return out;
}

std::vector<std::string> controller_front::names() const {
  std::vector<std::string> out{"controller"};
  for (auto& [name, handle] : services_)
    out.push_back(name);
  for (auto& [node, entry] : workers_)
    out.push_back("worker." + entry.id);
  std::sort(out.begin(), out.end());
  return out;
}

caf::actor controller_front::find_named(const std::string& name) const {
  if (auto found = services_.find(name); found != services_.end())
    return found->second;
  for (auto& [node, entry] : workers_)
    if ("worker." + entry.id == name)
      return entry.handle;
  return {};
}

caf::result<std::string> controller_front::command(command_request& request) {
  if (request.actor == "controller") {
    if (request.words == std::vector<std::string>{"status"})
      return host_.config().node.id + ": " + std::to_string(workers_.size()) + " workers, up for " +
             std::to_string(milliseconds_since(started_) / 1000) + " s";
    return to_caf({errc::invalid_argument, "the controller accepts: status"});
  }
  auto target = find_named(request.actor);
  if (!target)
    return to_caf({errc::not_found, "no actor is named '" + request.actor + "'" +
                                        did_you_mean(request.actor, names())});
  auto promise = self_->make_response_promise<std::string>();
  self_->request(target, command_deadline, std::move(request))
      .then([promise](std::string& answer) mutable { promise.deliver(std::move(answer)); },
            [promise](caf::error& e) mutable { promise.deliver(std::move(e)); });
  return promise;
}

void controller_front::shut_down() {
  if (std::exchange(ending_, true))
    return;
  for (auto& [node, entry] : workers_)
    self_->send(entry.handle, leave_now{"the cluster was shut down"});
  self_->delayed_send(self_, farewell, end_now{});
}

void controller_front::end() {
  for (auto& [node, entry] : workers_)
    entry.port->close();
  workers_.clear();
  self_->quit(caf::exit_reason::user_shutdown); // takes the linked services along
}

} // namespace troupe::cluster
