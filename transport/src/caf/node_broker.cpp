#include "caf/node_broker.hpp"

#include "caf/direct_proxy.hpp"
#include "caf/message_reader.hpp"
#include "caf/multiplexer.hpp"
#include "troupe/transport/log.hpp"

#include <caf/actor_registry.hpp>
#include <caf/detail/scope_guard.hpp>
#include <caf/detail/sync_request_bouncer.hpp>
#include <caf/exit_reason.hpp>
#include <caf/make_actor.hpp>
#include <exception>
#include <utility>

namespace troupe::transport {

namespace {

// The node whose message this thread deserializes: it can reach the nodes of the actors named
// there.
thread_local caf::node_id* last_hop = nullptr;

} // namespace

void node_broker::set_last_hop(caf::node_id* hop) {
  last_hop = hop;
  basp_broker::set_last_hop(hop);
}

std::shared_ptr<outbox> node_broker::box_to(const caf::node_id& node) {
  auto direct = instance.tbl().lookup_direct(node);
  return direct ? static_cast<multiplexer&>(abstract_broker::backend()).outbox_of(*direct)
                : nullptr;
}

size_t node_broker::long_run() {
  return static_cast<multiplexer&>(abstract_broker::backend()).long_run();
}

caf::strong_actor_ptr node_broker::make_proxy(caf::node_id node, caf::actor_id actor) {
  auto box = box_to(node);
  if (!box || actor == caf::invalid_actor_id)
    return basp_broker::make_proxy(std::move(node), actor);
  caf::actor_config config;
  auto proxy =
      caf::make_actor<direct_proxy, caf::strong_actor_ptr>(actor, node, &system(), config, *this);
  // Tell the other node that we watch this actor, before anything is sent to it.
  outbox::bytes notice;
  instance.write_monitor_message(nullptr, notice, node, actor);
  box->put(notice);
  // The proxy ends when the other node says that the actor has; then it is forgotten, on the loop.
  caf::strong_actor_ptr self{ctrl()};
  auto loop = &abstract_broker::backend();
  proxy->get()->attach_functor([self, loop, node, actor](const caf::error& reason) {
    loop->post([self, node, actor, reason] {
      auto owner = static_cast<node_broker*>(self->get());
      if (!owner->getf(abstract_actor::is_terminated_flag))
        owner->instance.proxies().erase(node, actor, reason);
    });
  });
  return proxy;
}

caf::node_id node_broker::peer_of(caf::io::connection_handle connection) const {
  return const_cast<node_broker*>(this)->instance.tbl().lookup_direct(connection);
}

void node_broker::heard_from(caf::io::connection_handle connection) {
  if (auto found = ctx.find(connection); found != ctx.end())
    found->second.last_seen = clock().now();
}

std::optional<node_broker::arrival> node_broker::unpack(caf::execution_unit& context,
                                                        const caf::node_id& peer,
                                                        const basp::header& what, byte_view payload,
                                                        std::span<const hole_place> holes) {
  arrival read;
  auto named = what.has(basp::header::named_receiver_flag);
  read.receiver = named ? system().registry().get(static_cast<caf::atom_value>(what.dest_actor))
                        : system().registry().get(what.dest_actor);
  read.id = caf::make_message_id(what.operation_data);
  if (!read.receiver && !read.id.is_request())
    return std::nullopt;
  auto hop = peer;
  set_last_hop(&hop);
  context.proxy_registry_ptr(&instance.proxies());
  auto restore = caf::detail::make_scope_guard([&] {
    context.proxy_registry_ptr(nullptr);
    set_last_hop(nullptr);
  });
  if (what.source_actor != caf::invalid_actor_id)
    read.sender = instance.proxies().get_or_put(peer, what.source_actor);
  if (!read.receiver) {
    caf::detail::sync_request_bouncer{caf::exit_reason::remote_link_unreachable}(read.sender,
                                                                                 read.id);
    return std::nullopt;
  }
  try {
    message_reader reader{context, payload, holes};
    auto error = reader(read.stages, read.content);
    read.places = reader.places();
    if (!error && !reader.failed() && read.places.size() == holes.size())
      return read;
    log_for("transport")
        ->error("a message from another node makes no sense and is dropped: {}",
                error             ? system().render(error)
                : reader.failed() ? "it is cut short"
                                  : "its long parts are not where it says");
  } catch (const std::exception& e) { // no memory, or what the application's types throw
    log_for("transport")->error("a message from another node is dropped: {}", e.what());
  }
  return std::nullopt;
}

void node_broker::hand_over(caf::execution_unit& context, arrival message) {
  auto& content = message.content;
  // A proxy tells of a link in a message.
  if (content.match_elements<caf::link_atom, caf::strong_actor_ptr>() ||
      content.match_elements<caf::unlink_atom, caf::strong_actor_ptr>()) {
    auto& other = content.get_as<caf::strong_actor_ptr>(1);
    auto proxy = other ? dynamic_cast<caf::actor_proxy*>(other->get()) : nullptr;
    if (!proxy)
      return;
    if (content.get_as<caf::atom_value>(0) == caf::link_atom::value)
      proxy->add_link(message.receiver->get());
    else
      proxy->remove_link(message.receiver->get());
    return;
  }
  // In one order with the messages that the broker delivers.
  auto& queue = instance.queue();
  queue.push(&context, queue.new_id(), std::move(message.receiver),
             caf::make_mailbox_element(std::move(message.sender), message.id,
                                       std::move(message.stages), std::move(content)));
}

} // namespace troupe::transport
