#include "support/child_process.hpp"
#include "systems.hpp"

#include <caf/event_based_actor.hpp>
#include <caf/io/broker.hpp>
#include <caf/io/middleman.hpp>
#include <doctest/doctest.h>
#include <string>

using namespace caf_backend;
using support::patience;

namespace {

/// Sends back what it gets and ends with the connection.
caf::behavior echo_session(caf::io::broker* self, caf::io::connection_handle peer) {
  self->configure_read(peer, caf::io::receive_policy::at_most(1024));
  return {
      [self](const caf::io::new_data_msg& msg) {
        self->write(msg.handle, msg.buf.size(), msg.buf.data());
        self->flush(msg.handle);
      },
      [self](const caf::io::connection_closed_msg&) { self->quit(); },
  };
}

caf::behavior echo_server(caf::io::broker* self) {
  return {[self](const caf::io::new_connection_msg& msg) { self->fork(echo_session, msg.handle); }};
}

/// Sends `text` and tells `whom` what comes back.
caf::behavior client(caf::io::broker* self, caf::io::connection_handle peer,
                     const std::string& text, const caf::actor& whom) {
  self->configure_read(peer, caf::io::receive_policy::exactly(text.size()));
  self->write(peer, text.size(), text.data());
  self->flush(peer);
  return {[self, whom](const caf::io::new_data_msg& msg) {
    self->send(whom, std::string{msg.buf.begin(), msg.buf.end()});
    self->quit();
  }};
}

} // namespace

TEST_CASE("brokers of the application speak plain TCP on the same middleman") {
  config cfg;
  caf::actor_system system{cfg};
  caf::scoped_actor self{system};
  uint16_t port = 0;
  auto server = system.middleman().spawn_server(echo_server, port);
  REQUIRE_MESSAGE(server, system.render(server.error()));
  auto other = system.middleman().spawn_client(client, "127.0.0.1", port, "over TCP",
                                               caf::actor_cast<caf::actor>(self));
  REQUIRE_MESSAGE(other, system.render(other.error()));
  std::string answer;
  self->receive([&](std::string& text) { answer = std::move(text); },
                caf::after(patience) >> [] { FAIL("no answer"); });
  CHECK(answer == "over TCP");
  caf::anon_send_exit(*server, caf::exit_reason::user_shutdown);
}
