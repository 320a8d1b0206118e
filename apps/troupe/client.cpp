#include "client.hpp"

#include "troupe/framework/errors.hpp"
#include "troupe/framework/units.hpp"
#include "troupe/transport/middleman.hpp"

#include <atomic>
#include <caf/actor_cast.hpp>
#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/io/middleman_actor.hpp>
#include <caf/send.hpp>
#include <caf/settings.hpp>
#include <set>
#include <thread>
#include <type_traits>

namespace troupe::cli {

namespace {

constexpr std::chrono::milliseconds connect_patience{10'000};

/// What the controller did not take by the end of a command does not matter any more: its answer is
/// here.
constexpr caf::timespan shutdown_patience = std::chrono::milliseconds{200};

caf::duration to_caf(patience limit) {
  return limit ? caf::duration{*limit} : caf::duration{caf::infinite};
}

tl::unexpected<failure> went_away(const std::string& controller) {
  return fail_with(failure::kind::connection,
                   {errc::disconnected, "the controller at " + controller + " went away"});
}

/// The failure that `e`, which came in place of an answer, stands for.
tl::unexpected<failure> explain(caf::actor_system& system, const caf::error& e,
                                const std::string& controller, patience limit) {
  auto why = to_troupe(system, e);
  if (e.category() == caf::atom("troupe"))
    return fail_with(failure::kind::cluster, std::move(why));
  if (e == caf::sec::unexpected_message || e == caf::sec::unexpected_response)
    return fail_with(failure::kind::cluster,
                     {errc::version_mismatch, "the controller at " + controller +
                                                  " speaks another version of the protocol: use "
                                                  "the `troupe` that came with its `trouped`"});
  if (why.code() == errc::timeout && limit)
    return fail_with(failure::kind::connection,
                     {errc::timeout, "the controller at " + controller + " did not answer within " +
                                         format_duration(*limit) +
                                         "; it may be stopped or overloaded: try again, or look "
                                         "at its log"});
  if (why.code() == errc::disconnected)
    return went_away(controller);
  return fail_with(failure::kind::connection,
                   {why.code(), "asking the controller at " + controller + ": " + why.text()});
}

std::atomic<int> attempts_left_behind = 0;

/// Destroys `what` in a thread of its own: an actor system that is connecting takes until the
/// attempt gives up.
template <class T>
void leave_behind(std::unique_ptr<T> what) {
  ++attempts_left_behind;
  std::thread{[abandoned = std::move(what)]() mutable {
    abandoned.reset();
    --attempts_left_behind;
  }}.detach();
}

/// Lives for one request.
template <class Answer, class Request>
void ask_once(caf::event_based_actor* self, const caf::actor& controller, const std::string& where,
              Request& request, patience limit, const std::shared_ptr<reply<Answer>>& coming) {
  // A request to an actor of a node that is gone would not fail by itself.
  self->set_down_handler([self, coming, where](const caf::down_msg&) {
    coming->set(went_away(where));
    self->quit();
  });
  self->monitor(controller);
  auto on_error = [self, coming, where, limit](const caf::error& e) {
    coming->set(explain(self->system(), e, where, limit));
    self->quit();
  };
  auto sent = self->request(controller, to_caf(limit), std::move(request));
  if constexpr (std::is_void_v<Answer>) {
    sent.then(
        [self, coming] {
          coming->set({});
          self->quit();
        },
        on_error);
  } else {
    sent.then(
        [self, coming](Answer& value) {
          coming->set(std::move(value));
          self->quit();
        },
        on_error);
  }
}

} // namespace

/// Members go in reverse: what the system's actors use stands first.
struct client::parts {
  parts(const std::string& device, const std::filesystem::path& key_file) {
    config.load<transport::middleman>();
    config.set("scheduler.policy", caf::atom("sharing"));
    config.set("scheduler.max-threads", size_t{1});
    caf::put(config.content, "troupe.device", device);
    if (!key_file.empty())
      caf::put(config.content, "troupe.key-file", key_file.string());
    caf::put(config.content, "troupe.connect-timeout", caf::timespan{connect_patience});
    caf::put(config.content, "troupe.shutdown-timeout", shutdown_patience);
    cluster::add_message_types(config);
    system.emplace(config);
  }

  ~parts() {
    if (watcher)
      caf::anon_send_exit(watcher, caf::exit_reason::user_shutdown);
  }

  std::shared_ptr<std::atomic<bool>> lost = std::make_shared<std::atomic<bool>>(false);
  caf::actor_system_config config;
  std::optional<caf::actor_system> system;
  caf::actor controller;
  caf::actor watcher;
};

client::client(transport::endpoint where, std::unique_ptr<parts> made)
    : where_(std::move(where)), parts_(std::move(made)) {}

client::~client() = default;

answer<std::unique_ptr<client>> client::connect(const transport::endpoint& where,
                                                const std::string& device,
                                                const std::filesystem::path& key_file,
                                                const interrupts& stop) {
  auto made = std::make_unique<parts>(device, key_file);
  auto& system = *made->system;
  auto& network = transport::middleman::of(system);
  if (!network.ready())
    return fail_with(failure::kind::connection, network.ready().error());

  auto coming = std::make_shared<reply<caf::actor>>();
  system.spawn([&network, coming, where](caf::event_based_actor* self) {
    self->request(network.actor_handle(), connect_patience, caf::connect_atom::value, where.host,
                  where.port)
        .then(
            [coming](const caf::node_id&, const caf::strong_actor_ptr& found,
                     const std::set<std::string>&) {
              if (found)
                coming->set(caf::actor_cast<caf::actor>(found));
              else
                coming->set(fail_with(failure::kind::connection,
                                      {errc::protocol_violation, "what listens there is a node of "
                                                                 "CAF without an actor"}));
            },
            [self, coming](const caf::error& e) {
              auto why = to_troupe(self->system(), e);
              if (e == caf::sec::request_timeout)
                why = {errc::timeout, "no answer within " + format_duration(connect_patience)};
              coming->set(fail_with(failure::kind::connection, std::move(why)));
            });
  });
  coming->wait(std::nullopt, stop);
  auto controller = coming->take();
  if (!controller) {
    auto problem = controller.error();
    if (problem.what != failure::kind::connection) {
      leave_behind(std::move(made));
      return tl::unexpected<failure>(std::move(problem));
    }
    if (problem.why.code() == errc::unauthenticated ||
        problem.why.code() == errc::permission_denied ||
        problem.why.code() == errc::version_mismatch)
      return fail_with(failure::kind::connection, std::move(problem.why)); // there is one
    return fail_with(failure::kind::connection,
                     {problem.why.code(),
                      "no controller at " + to_string(where) + " over " + network.device_name() +
                          " (" + problem.why.text() +
                          "); start one with `trouped` or name another with --controller, "
                          "TROUPE_CONTROLLER or [client] controller in the configuration file"});
  }
  made->controller = std::move(*controller);
  made->watcher = system.spawn<caf::hidden>(
      [lost = made->lost, whom = made->controller](caf::event_based_actor* self) {
        self->set_down_handler([self, lost](const caf::down_msg&) {
          lost->store(true);
          self->quit();
        });
        self->monitor(whom);
        self->become([](caf::unit_t) {}); // stays until the controller goes, or the client does
      });
  return std::unique_ptr<client>{new client{where, std::move(made)}};
}

template <class Request>
pending<answer_to<Request>> client::start(Request request, patience limit) {
  using value = answer_to<Request>;
  auto coming = std::make_shared<reply<value>>();
  auto asking = parts_->system->spawn(
      [coming, limit, controller = parts_->controller, where = to_string(where_),
       asked = std::move(request)](caf::event_based_actor* self) mutable {
        ask_once<value>(self, controller, where, asked, limit, coming);
      });
  coming->on_give_up([asking] { caf::anon_send_exit(asking, caf::exit_reason::kill); });
  return pending<value>{std::move(coming)};
}

template pending<submitted> client::start(submit_request, patience);
template pending<std::vector<job_summary>> client::start(list_jobs_request, patience);
template pending<job_details> client::start(job_request, patience);
template pending<job_summary> client::start(wait_request, patience);
template pending<output_chunk> client::start(output_request, patience);
template pending<job_summary> client::start(cancel_request, patience);
template pending<std::vector<node_summary>> client::start(list_nodes_request, patience);
template pending<cluster_info> client::start(info_request, patience);
template pending<std::string> client::start(command_request, patience);
template pending<std::vector<std::string>> client::start(list_actors_request, patience);
template pending<void> client::start(shutdown_request, patience);

bool client::left_behind() {
  return attempts_left_behind.load() > 0;
}

bool client::lost() const {
  return parts_->lost->load();
}

std::string client::device_name() const {
  return transport::middleman::of(*parts_->system).device_name();
}

} // namespace troupe::cli
