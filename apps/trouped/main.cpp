// trouped: one node of a cluster. Exits with 0 when it was told to end, with 1 when something
// failed, with 2 when its command line or configuration is wrong.
#include "options.hpp"

#include <caf/exit_reason.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <csignal>
#include <cstdio>
#include <memory>
#include <pthread.h>
#include <thread>
#include <troupe/actors/controller.hpp>
#include <troupe/actors/messages.hpp>
#include <troupe/actors/worker.hpp>
#include <troupe/framework/config.hpp>
#include <troupe/framework/errors.hpp>
#include <troupe/framework/node.hpp>
#include <troupe/transport/log.hpp>
#include <troupe/transport/shared_key.hpp>

namespace {

using namespace troupe;

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGUSR1); // ends the watcher
  return set;
}

/// A thread that turns the signals into messages. They must be blocked in every thread, so before
/// any is made.
class signal_watcher {
public:
  explicit signal_watcher(caf::actor whom)
      : thread_([whom = std::move(whom)] {
          auto set = stop_signals();
          for (int number = 0; sigwait(&set, &number) == 0 && number != SIGUSR1;)
            caf::anon_send(whom, number);
        }) {}

  ~signal_watcher() {
    pthread_kill(thread_.native_handle(), SIGUSR1);
    thread_.join();
  }

private:
  std::thread thread_;
};

void complain(const error& e) {
  std::fprintf(stderr, "trouped: %s\n", e.text().c_str());
}

int make_key(const std::filesystem::path& file) {
  if (auto made = transport::create_key_file(file); !made) {
    complain(made.error());
    return 1;
  }
  std::printf("trouped: %s holds a new key; copy it to every node of the cluster, readable by its "
              "owner only, and name it with [cluster] key_file or TROUPE_KEY_FILE\n",
              file.c_str());
  return 0;
}

transport::endpoint controller_of(const node_config& config, const transport::endpoint& own) {
  if (config.node.controller)
    return *config.node.controller;
  auto everywhere = own.host.empty() || own.host == "0.0.0.0" || own.host == "::";
  return {everywhere ? "127.0.0.1" : own.host, own.port};
}

int run(node& host) {
  auto& config = host.config();
  caf::scoped_actor self{host.system()};
  signal_watcher signals{caf::actor_cast<caf::actor>(self)};
  std::unique_ptr<cluster::controller> controls;
  caf::actor worker;
  auto where = config.node.listen;
  if (config.node.roles.controller) {
    auto started = cluster::controller::start(host);
    if (!started) {
      complain(started.error());
      return 1;
    }
    controls = std::move(*started);
    where = controls->listening();
    self->monitor(controls->actor());
  }
  if (config.node.roles.worker) {
    worker = cluster::spawn_worker(host, controller_of(config, where));
    self->monitor(worker);
  }
  std::printf("trouped: node %s (%s) on %s%s%s\n", config.node.id.c_str(),
              to_string(config.node.roles).c_str(), host.network().device_name().c_str(),
              controls ? ", listening on " : "", controls ? to_string(where).c_str() : "");
  if (!host.network().has_key())
    std::printf("trouped: without a key, only processes of this user on this machine connect\n");
  std::fflush(stdout);

  auto status = 0;
  auto waiting_for = (controls ? 1 : 0) + (worker ? 1 : 0);
  auto stop_all = [&] {
    if (worker)
      cluster::stop_worker(worker);
    if (controls)
      controls->stop();
  };
  self->receive_while([&] { return waiting_for > 0; })(
      [&](int) { stop_all(); },
      [&](const caf::down_msg& down) {
        --waiting_for;
        auto ended_well = !down.reason || down.reason == caf::exit_reason::normal ||
                          down.reason == caf::exit_reason::user_shutdown;
        if (!ended_well) {
          complain(to_troupe(host.system(), down.reason));
          status = 1;
        }
        if (worker && down.source == worker.address() && controls)
          controls->stop(); // a node with both roles ends as one
      });
  return status;
}

} // namespace

int main(int argc, char** argv) {
  auto set = stop_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  auto status = 0;
  auto options = trouped::parse(argc, argv, status);
  if (!options)
    return status;
  if (options->new_key)
    return make_key(*options->new_key);
  auto config = load_node_config(options->file, options->flags);
  if (!config) {
    complain(config.error());
    return 2;
  }
  if (options->check_only) {
    std::printf("the configuration is valid\n");
    return 0;
  }
  set_log_level(spdlog::level::from_str(config->log.level));
  auto host = node::start(std::move(*config), cluster::add_message_types);
  if (!host) {
    complain(host.error());
    return 1;
  }
  return run(**host);
}
