// CAF on RDMA with one line:
//
//     cfg.load<troupe::transport::middleman>();      // in place of caf::io::middleman
//
// `publish`, `remote_actor`, `remote_spawn`, `remote_group`, `open`, `connect` and `unpublish` then
// use the device that `TROUPE_DEVICE` or the option `troupe.device` names. Brokers that an
// application makes with `spawn_server`, `spawn_client`, `add_tcp_scribe` or `add_tcp_doorman` go
// on speaking plain TCP, on the same loop thread. So do the direct connections of
// `middleman.enable-automatic-connections`.
//
// Options of the CAF configuration (in code: `caf::put(cfg.content, "troupe.device", "soft")`, as
// CAF's `set` refuses names that it does not know):
//   troupe.device             see `open_device`; default "auto"
//   troupe.key-file           the key that peers must have, see `load_key_file`; default: the file
//   that TROUPE_KEY_FILE names. Without one, only loopback addresses are listened on, and only
//   processes of the same user are let in
//   troupe.eager-threshold    messages from this many bytes on go by RDMA Read; default 32768
//   troupe.connect-timeout    how long `remote_actor` waits for a connection; default 10s
//   troupe.shutdown-timeout   how long the end of the system waits for peers to take what was sent;
//                             default 5s
//   troupe.run-handlers       whether actors that a message has made runnable run on the loop, as
//                             long as they are quick; default true
//   troupe.spin-window        how long the loop looks for work before it sleeps; default 0s
//   scheduler.policy          default here: 'sharing', as CAF's work stealing polls when it is idle
//   middleman.workers         default here: 0, messages are deserialized on the loop thread
#pragma once

#include "troupe/transport/error.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/io/middleman.hpp>
#include <memory>
#include <string>

namespace troupe::transport {

class engine;
class memory_service;
class multiplexer;

/// The CAF module. Made by `actor_system_config::load`; reached by `middleman::of(system)`.
class middleman final : public caf::io::middleman {
public:
  explicit middleman(caf::actor_system& system);
  ~middleman() override;

  /// What `actor_system_config::load` calls.
  static caf::actor_system::module* make(caf::actor_system& system, caf::detail::type_list<>);

  /// The module of a system whose configuration loaded this middleman. Any thread.
  static middleman& of(caf::actor_system& system);

  void init(caf::actor_system_config& config) override;
  void start() override;
  caf::io::network::multiplexer& backend() override;

  /// Whether the device could be opened. When not, every publish and connect fails with this error.
  /// Any thread.
  status ready() const;

  /// Name of the device and why it was chosen, for people; empty when it could not be opened. Any
  /// thread.
  std::string device_name() const;
  std::string device_choice() const;

  /// Whether peers must prove that they have a key. Only when `ready()`. Any thread.
  bool has_key() const;

  /// One-sided memory, on this system's device. Only when `ready()`. Any thread.
  memory_service& memory();

  /// The engine, for code that runs on the loop thread (see `run_later`). Only when `ready()`.
  engine& loop();

private:
  std::unique_ptr<multiplexer> backend_;
};

} // namespace troupe::transport
