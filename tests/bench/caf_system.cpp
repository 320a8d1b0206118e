#include "caf_system.hpp"

#include <caf/event_based_actor.hpp>
#include <caf/io/middleman.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <cstdio>
#include <stdexcept>
#include <troupe/transport/middleman.hpp>

namespace bench {

caf_config::caf_config(const context& c) {
  if (c.column.starts_with("troupe")) {
    load<troupe::transport::middleman>();
    caf::put(content, "troupe.device", c.column == "troupe_soft" ? "soft" : c.device);
    caf::put(content, "troupe.connect-timeout", caf::timespan{std::chrono::seconds{60}});
    if (c.spinning)
      caf::put(content, "troupe.spin-window", caf::timespan{std::chrono::milliseconds{1}});
  } else {
    load<caf::io::middleman>();
  }
  if (c.column.ends_with("_tuned")) {
    set("scheduler.policy", caf::atom("sharing"));
    set("scheduler.max-threads", size_t{1});
  }
}

int serve_actor(const context& c, caf::actor_system& system, const caf::actor& whom) {
  auto port = system.middleman().publish(whom, 0, c.address.c_str());
  if (!port) {
    std::fprintf(stderr, "bench: cannot publish at %s: %s\n", c.address.c_str(),
                 system.render(port.error()).c_str());
    caf::anon_send_exit(whom, caf::exit_reason::kill);
    return 1;
  }
  std::printf("%d\n", int{*port});
  std::fflush(stdout);
  caf::scoped_actor self{system};
  self->wait_for(whom);
  return 0;
}

caf::actor connect_to(const context& c, caf::actor_system& system, const std::string& port) {
  auto found = system.middleman().remote_actor(c.address, static_cast<uint16_t>(std::stoul(port)));
  if (!found)
    throw std::runtime_error{"cannot connect: " + system.render(found.error())};
  return *found;
}

caf_client::caf_client(const context& c, const std::string& role,
                       std::vector<std::string> arguments)
    : peer_(c.start_peer(role, std::move(arguments))), port_(peer_->line(std::chrono::seconds{60})),
      config_(c), system_(config_), server_(connect_to(c, system_, port_)) {}

caf_client::~caf_client() {
  caf::anon_send_exit(server_, caf::exit_reason::user_shutdown);
}

} // namespace bench
