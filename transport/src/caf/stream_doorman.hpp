// A published port on the engine's device. Internal.
#pragma once

#include "caf/caf_version.hpp"
#include "caf/stream_scribe.hpp"
#include "troupe/transport/engine.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe::transport {

/// Loop thread only, except for the release of the last reference.
class stream_doorman final : public caf::io::doorman {
public:
  stream_doorman(multiplexer& owner, caf::io::accept_handle handle);
  ~stream_doorman() override;

  /// Gives the doorman its listener, whose requests go to `on_request`.
  void attach(std::unique_ptr<listener> port);
  void on_request(std::unique_ptr<connection_request> request);

  /// Tells the broker about an established connection.
  /// @returns false when there is no broker any more.
  bool announce(caf::intrusive_ptr<stream_scribe> scribe);

  // -- caf::io::doorman
  // -------------------------------------------------------------------------------
  bool new_connection() override;
  void launch() override;
  void graceful_shutdown() override;
  std::string addr() const override;
  uint16_t port() const override;
  void add_to_loop() override;
  void remove_from_loop() override;

private:
  multiplexer& owner_;
  std::unique_ptr<listener> port_;
  endpoint local_;
  bool launched_ = false;
  std::vector<std::unique_ptr<connection_request>> early_; // before the broker is ready
};

} // namespace troupe::transport
