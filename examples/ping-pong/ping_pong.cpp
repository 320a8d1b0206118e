// A plain CAF program: one process publishes an actor, another one calls it.
//
//     ping_pong serve [PORT]            prints the port, answers until it is asked to end
//     ping_pong call HOST PORT [COUNT]  sends COUNT pings, then asks the server to end
//
// The only line that is Troupe's is marked.
#include <caf/all.hpp>
#include <caf/io/all.hpp>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <troupe/transport/middleman.hpp>

namespace {

struct config : caf::actor_system_config {
  config() {
    load<troupe::transport::middleman>(); // was: load<caf::io::middleman>()
  }
};

caf::behavior pong(caf::event_based_actor* self) {
  return {
      [](const std::string& ping) { return ping + "-pong"; },
      [self](caf::exit_reason why) { self->quit(why); },
  };
}

int serve(caf::actor_system& system, uint16_t port, const char* host) {
  auto server = system.spawn(pong);
  auto published = system.middleman().publish(server, port, host);
  if (!published) {
    std::cerr << "cannot publish: " << system.render(published.error()) << '\n';
    caf::anon_send_exit(server, caf::exit_reason::kill);
    return 1;
  }
  std::cout << *published << std::endl;
  return 0; // the system lives until its actor has ended
}

int call(caf::actor_system& system, const std::string& host, uint16_t port, int count) {
  auto server = system.middleman().remote_actor(host, port);
  if (!server) {
    std::cerr << "cannot connect: " << system.render(server.error()) << '\n';
    return 1;
  }
  caf::scoped_actor self{system};
  auto status = 0;
  for (int i = 0; i < count && status == 0; ++i)
    self->request(*server, std::chrono::minutes{1}, "ping")
        .receive([](const std::string& answer) { std::cout << answer << '\n'; },
                 [&](const caf::error& e) {
                   std::cerr << "no answer: " << system.render(e) << '\n';
                   status = 1;
                 });
  self->send(*server, caf::exit_reason::user_shutdown);
  return status;
}

} // namespace

int main(int argc, char** argv) {
  const std::string role = argc > 1 ? argv[1] : "";
  auto number = [&](int i, long fallback) { return argc > i ? std::atol(argv[i]) : fallback; };
  config cfg;
  caf::actor_system system{cfg};
  if (role == "serve")
    return serve(system, static_cast<uint16_t>(number(2, 0)), argc > 3 ? argv[3] : nullptr);
  if (role == "call" && argc > 3)
    return call(system, argv[2], static_cast<uint16_t>(number(3, 0)),
                static_cast<int>(number(4, 3)));
  std::cerr << "usage: ping_pong serve [PORT [ADDRESS]] | ping_pong call HOST PORT [COUNT]\n";
  return 2;
}
