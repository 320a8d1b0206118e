#include "worker/worker_actor.hpp"

#include "troupe/actors/worker.hpp"
#include "troupe/framework/errors.hpp"
#include "troupe/framework/units.hpp"
#include "troupe/transport/log.hpp"
#include "troupe/transport/resolve.hpp"

#include <algorithm>
#include <caf/exit_reason.hpp>
#include <caf/io/middleman.hpp>
#include <caf/send.hpp>
#include <set>
#include <utility>

namespace troupe::cluster {

namespace {

constexpr std::chrono::milliseconds first_pause{300}; // doubled with each attempt that fails
constexpr std::chrono::milliseconds longest_pause{2000};
constexpr std::chrono::seconds connect_deadline{10};
constexpr std::chrono::seconds join_deadline{10};
constexpr std::chrono::seconds sample_pause{1};
constexpr std::chrono::seconds farewell_deadline{5};

std::vector<std::string> role_names(node_roles roles) {
  std::vector<std::string> out;
  if (roles.controller)
    out.emplace_back("controller");
  if (roles.worker)
    out.emplace_back("worker");
  return out;
}

} // namespace

worker_role::worker_role(caf::event_based_actor* self, node& host, transport::endpoint controller)
    : self_(self), host_(host), where_(std::move(controller)), pause_(first_pause) {}

caf::behavior worker_role::make_behavior() {
  self_->set_down_handler([this](const caf::down_msg& down) {
    if (controller_ && down.source == controller_.address())
      lost({errc::disconnected, "the controller's process ended, or the connection broke"});
  });
  self_->send(self_, try_to_connect{});
  self_->send(self_, sample_figures{});
  return {
      [this](try_to_connect) { connect(); },
      [this](sample_figures) {
        sample();
        self_->delayed_send(self_, sample_pause, sample_figures{});
      },
      [this](const link_opened& what) {
        if (!current(what.node))
          return;
        log_for("worker")->warn("joined the cluster of {} as {}", to_string(where_),
                                host_.config().node.id);
        joined_ = true;
        complained_ = false;
      },
      [this](const link_closed& what) {
        if (current(what.node))
          lost(what.reason);
      },
      [this](const task_assigned& what) { on_assigned(what); },
      [this](block_read& what) { on_block(what); },
      [this](const task_happened& what) { on_task_event(what); },
      // -- from the controller
      [this](const kill_tasks& order) {
        if (current(incarnation_) && from_controller())
          session_->kill(order.tasks);
      },
      [this](const output_taken& what) {
        if (session_ && from_controller())
          session_->forget_output(what.what);
      },
      [this](const declared_dead& what) {
        if (current(what.incarnation) && from_controller())
          lost({errc::refused, "the controller has declared this node dead: " + what.reason});
      },
      [this](const leave_now& order) {
        log_for("worker")->warn("leaving: {}", order.reason);
        end(caf::exit_reason::normal);
      },
      [this](command_request& request) { return command(request.words); },
      [this](say_goodbye) { depart(); },
  };
}

// -- finding the controller
// -------------------------------------------------------------------------------

void worker_role::connect() {
  if (session_)
    return;
  // The controller's host has few addresses; a name that does not resolve at once keeps only this
  // actor waiting.
  auto addresses = transport::resolve(where_);
  if (!addresses)
    return retry(addresses.error());
  auto numeric = addresses->front();
  auto middleman = host_.system().middleman().actor_handle();
  self_->request(middleman, connect_deadline, caf::connect_atom_v, numeric.host, numeric.port)
      .then(
          [this, numeric](const caf::node_id&, const caf::strong_actor_ptr& found,
                          const std::set<std::string>&) {
            if (!found)
              return retry({errc::not_found, "there is a node, but no controller"});
            join(caf::actor_cast<caf::actor>(found), numeric);
          },
          [this](const caf::error& e) { retry(to_troupe(host_.system(), e)); });
}

void worker_role::retry(const error& why) {
  auto limit = host_.config().membership.rejoin_for;
  auto left = limit - (clock::now() - searching_since_);
  if (left <= clock::duration::zero())
    return give_up(
        {why.code(), "no controller at " + to_string(where_) + " within " + format_duration(limit) +
                         ": " + why.text() +
                         "; start one there with `trouped`, or name another with node.controller"});
  if (!std::exchange(complained_, true))
    log_for("worker")->warn("waiting for the controller at {}: {}", to_string(where_), why.text());
  self_->delayed_send(self_, std::min<clock::duration>(pause_, left), try_to_connect{});
  pause_ = std::min(pause_ * 2, longest_pause);
}

void worker_role::join(const caf::actor& controller, const transport::endpoint& reached) {
  auto& config = host_.config();
  incarnation_ = make_incarnation();
  auto me = caf::actor_cast<caf::actor>(self_);
  auto node = incarnation_;
  worker_memory::events events;
  events.opened = [me, node] { caf::anon_send(me, link_opened{node}); };
  events.closed = [me, node](const error& reason) {
    caf::anon_send(me, link_closed{node, reason});
  };
  events.assigned = [me, node](uint32_t slot, std::vector<std::byte> record) {
    caf::anon_send(me, task_assigned{node, slot, std::move(record)});
  };
  auto memory =
      worker_memory::create(host_.network(), node, config.worker.slots, std::move(events));
  if (!memory)
    return give_up(memory.error());
  auto session =
      worker_session::create(*memory, {config.node.id, config.worker.slots, config.worker.spool},
                             [me, node](std::shared_ptr<task_event> event) {
                               caf::anon_send(me, task_happened{node, std::move(event)});
                             });
  if (!session)
    return give_up(session.error());
  session_ = std::move(*session);
  controller_ = controller;
  self_->monitor(controller);
  join_request request;
  request.id = config.node.id;
  request.incarnation = node;
  request.roles = role_names(config.node.roles);
  if (config.node.roles
          .controller) // then it is this node's, and `where_` has the port that was chosen
    request.address = to_string(transport::endpoint{config.node.listen.host, where_.port});
  request.cpus = config.worker.cpus;
  request.memory = config.worker.memory;
  request.slots = config.worker.slots;
  request.inbox = (*memory)->inbox();
  request.state = (*memory)->state();
  request.lease = (*memory)->lease();
  self_->request(controller, join_deadline, std::move(request))
      .then(
          [this, node, reached](const join_accepted& terms) {
            if (!current(node))
              return;
            session_->memory().connect(reached, terms, connect_deadline);
          },
          [this, node](const caf::error& e) {
            if (!current(node))
              return;
            auto why = to_troupe(host_.system(), e);
            if (why.code() == errc::already_exists || why.code() == errc::invalid_argument)
              return give_up(why);
            lost(why);
          });
}

/// Kills what runs and looks for the controller again, as a new incarnation.
void worker_role::lost(const error& why) {
  if (!session_ || leaving_)
    return;
  auto running = session_->running();
  session_.reset();
  self_->demonitor(controller_);
  controller_ = nullptr;
  if (!std::exchange(joined_, false))
    return retry(why); // the time that it may take goes on
  log_for("worker")->warn("lost the controller ({}); {} tasks killed", why.text(), running);
  searching_since_ = clock::now();
  pause_ = first_pause;
  self_->delayed_send(self_, pause_, try_to_connect{});
}

/// Whether an actor of the controller's process, its scheduler say, has sent the present message.
bool worker_role::from_controller() const {
  auto& sender = self_->current_sender();
  return sender && controller_ && sender->node() == controller_.node();
}

void worker_role::give_up(const error& why) {
  end(to_caf(why));
}

/// Leaves in order: when the controller hears of it no task runs here any more.
void worker_role::depart() {
  if (leaving_)
    return;
  leaving_ = true;
  if (!session_ || !joined_)
    return end(caf::exit_reason::user_shutdown);
  session_->end_tasks();
  self_->request(controller_, farewell_deadline, leaving{incarnation_})
      .then([this] { end(caf::exit_reason::user_shutdown); },
            [this](const caf::error&) { end(caf::exit_reason::user_shutdown); });
}

void worker_role::end(caf::error reason) {
  session_.reset();
  self_->quit(std::move(reason));
}

// -- tasks
// ------------------------------------------------------------------------------------------------

void worker_role::on_assigned(const task_assigned& what) {
  if (!current(what.node))
    return;
  auto task = decode_task_slot(what.record);
  if (!task) {
    log_for("worker")->error("slot {} holds no task: {}", what.slot, task.error().text());
    return lost({errc::protocol_violation, "the controller wrote what is not a task"});
  }
  if (!task->body)
    return session_->start(what.slot, task->order);
  auto& where = task->body->where;
  auto me = caf::actor_cast<caf::actor>(self_);
  session_->memory().read(
      {where.address, where.length, where.key},
      [me, node = what.node, slot = what.slot, task = *task](result<std::vector<std::byte>> bytes) {
        caf::anon_send(me, block_read{node, slot, task, std::move(bytes)});
      });
}

void worker_role::on_block(block_read& what) {
  if (!current(what.node))
    return;
  auto& order = what.task.order;
  auto read = what.bytes ? decode_task_body(*what.bytes, *what.task.body, order) : status{};
  if (what.bytes && read)
    return session_->start(what.slot, order);
  auto& why = what.bytes ? read.error() : what.bytes.error();
  session_->refuse(what.slot, {what.slot, order.attempt, order.job, order.task},
                   "the task could not be read from the controller: " + why.text());
}

void worker_role::on_task_event(const task_happened& what) {
  if (!current(what.node))
    return;
  if (auto going_on = session_->on_event(*what.event); !going_on)
    lost(going_on.error());
}

void worker_role::sample() {
  if (!session_)
    return;
  state_snapshot figures;
  if (auto host = sampler_.sample()) {
    figures.cpu_busy_permille = host->cpu_busy_permille;
    figures.load_permille = host->load_permille;
    figures.memory_total = host->memory_total;
    figures.memory_available = host->memory_available;
  } else {
    log_for("worker")->debug("no figures of this host: {}", host.error().text());
  }
  figures.running_tasks = session_->running();
  figures.finished_tasks = session_->finished();
  session_->memory().set_figures(figures);
}

caf::result<std::string> worker_role::command(const std::vector<std::string>& words) {
  if (words == std::vector<std::string>{"tasks"})
    return session_ ? session_->describe() : "not joined";
  if (words == std::vector<std::string>{"ping"})
    return std::string{"pong"};
  return to_caf({errc::invalid_argument, "a worker accepts: ping, tasks"});
}

// -- public
// -------------------------------------------------------------------------------------------------

caf::actor spawn_worker(node& host, const transport::endpoint& where) {
  return host.system().spawn([&host, where](caf::event_based_actor* self) -> caf::behavior {
    auto role = std::make_shared<worker_role>(self, host, where);
    self->attach_functor([role] {}); // lives as long as the actor
    return role->make_behavior();
  });
}

void stop_worker(const caf::actor& worker) {
  caf::anon_send(worker, say_goodbye{});
}

} // namespace troupe::cluster
