#include "troupe/framework/node.hpp"

#include "troupe/framework/errors.hpp"

#include <caf/atom.hpp>
#include <utility>

namespace troupe {

namespace {

/// What can be done about an address that cannot be listened on.
std::string remedy(errc code) {
  if (code == errc::unauthenticated)
    return {}; // the error says it
  if (code == errc::address_in_use)
    return "; end what listens there, or set node.listen to another address or port";
  return "; set node.listen to an address of this machine";
}

} // namespace

node::node(node_config config) : config_(std::move(config)) {}

result<std::unique_ptr<node>> node::start(node_config config, const customizer& customize) {
  std::unique_ptr<node> made{new node{std::move(config)}};
  auto& options = made->actor_config_;
  options.load<transport::middleman>();
  caf::put(options.content, "troupe.device", made->config_.transport.device);
  if (!made->config_.cluster.key_file.empty())
    caf::put(options.content, "troupe.key-file", made->config_.cluster.key_file.string());
  caf::put(options.content, "troupe.eager-threshold", made->config_.transport.eager_threshold);
  // CAF's default policy polls with sleeps of 50 microseconds; few actors here are long, and none
  // is many.
  options.set("scheduler.policy", caf::atom("sharing"));
  options.set("scheduler.max-threads", size_t{2});
  if (customize)
    customize(options);
  made->system_ = std::make_unique<caf::actor_system>(options);
  if (auto ready = made->network().ready(); !ready)
    return fail(ready.error());
  return made;
}

result<transport::endpoint> node::publish(const caf::actor& whom,
                                          const transport::endpoint& where) {
  auto host = where.host.empty() ? nullptr : where.host.c_str();
  auto port = system_->middleman().publish(whom, where.port, host);
  if (!port) {
    auto why = to_troupe(*system_, port.error());
    return fail(why.code(), why.text() + remedy(why.code()));
  }
  auto restricted = where.host.empty() && !network().has_key();
  return transport::endpoint{restricted ? transport::loopback_host : where.host, *port};
}

result<caf::actor> node::connect(const transport::endpoint& where) {
  auto found = system_->middleman().remote_actor(where.host, where.port);
  if (!found)
    return fail(to_troupe(*system_, found.error()));
  return *found;
}

} // namespace troupe
