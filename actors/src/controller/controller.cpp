#include "troupe/actors/controller.hpp"

#include "controller/controller_actor.hpp"
#include "controller/monitor_actor.hpp"
#include "controller/scheduler_actor.hpp"
#include "troupe/framework/errors.hpp"
#include "troupe/framework/units.hpp"

#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <memory>
#include <sstream>
#include <utility>

namespace troupe::cluster {

namespace {

constexpr std::chrono::seconds books_deadline{10};

std::string format_books(const books& all) {
  std::ostringstream out;
  for (auto& [node, page] : all.nodes) {
    if (out.tellp() > 0)
      out << '\n';
    auto& account = page.account;
    out << format_incarnation(node) << ": cpus " << account.granted.cpus << " granted, "
        << account.free.cpus << " free of " << account.total.cpus << "; memory "
        << format_size(account.granted.memory) << " granted, " << format_size(account.free.memory)
        << " free of " << format_size(account.total.memory) << "; " << account.grants << " grants";
  }
  return out.tellp() > 0 ? out.str() : "no worker is connected";
}

/// Answers questions about the resource books, which the scheduler keeps.
caf::behavior resources(caf::event_based_actor* self, const caf::actor& scheduler) {
  return {[self, scheduler](const command_request& request) -> caf::result<std::string> {
    if (request.words != std::vector<std::string>{"show"})
      return to_caf({errc::invalid_argument, "the resource manager accepts: show"});
    auto promise = self->make_response_promise<std::string>();
    self->request(scheduler, books_deadline, books_request{})
        .then([promise](const books& all) mutable { promise.deliver(format_books(all)); },
              [promise](caf::error& e) mutable { promise.deliver(std::move(e)); });
    return promise;
  }};
}

/// An actor whose behaviour and state are an object of class `Role`.
template <class Role, class... Ts>
caf::actor spawn_role(caf::actor_system& system, Ts&&... xs) {
  auto arguments = std::make_shared<std::tuple<std::decay_t<Ts>...>>(std::forward<Ts>(xs)...);
  return system.spawn([arguments](caf::event_based_actor* self) -> caf::behavior {
    auto role = std::apply(
        [self](auto&... ys) { return std::make_shared<Role>(self, std::move(ys)...); }, *arguments);
    self->attach_functor([role] {}); // lives as long as the actor
    return role->make_behavior();
  });
}

} // namespace

result<std::unique_ptr<controller>> controller::start(node& host) {
  auto& config = host.config();
  auto store = output_store::create(config.worker.spool);
  if (!store)
    return fail(store.error());
  auto& system = host.system();
  auto scheduling = spawn_role<scheduler>(system, std::move(*store), config.scheduler.retries);
  auto monitoring = spawn_role<monitor>(system, config.monitor.interval);
  auto books_of = system.spawn(resources, scheduling);
  auto front =
      spawn_role<controller_front>(system, std::ref(host), scheduling, monitoring, books_of);
  caf::anon_send(monitoring, report_to{front});
  std::unique_ptr<controller> made{new controller};
  made->actor_ = front;
  auto listening = host.publish(front, config.node.listen);
  if (!listening) {
    caf::anon_send_exit(front, caf::exit_reason::user_shutdown);
    return fail(listening.error());
  }
  made->listening_ = *listening;
  caf::anon_send(front, listening_at{*listening});
  return made;
}

controller::~controller() {
  if (actor_)
    caf::anon_send(actor_, end_now{});
}

void controller::stop() {
  caf::anon_send(actor_, shutdown_request{});
}

} // namespace troupe::cluster
