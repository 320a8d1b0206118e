// Who may open memory links to this node, and the way to open one to another node.
#pragma once

#include "troupe/transport/memory_link.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace troupe::transport {

/// A link and the handlers of whoever expects it.
using link_ptr = std::shared_ptr<memory_link>;

/// One per actor system. Links come in over the ports that the system has published
/// (`middleman::publish` or `open`), next to CAF's own connections.
class memory_service {
public:
  explicit memory_service(engine& loop) : loop_(loop) {}

  /// Page-aligned memory registered for peers. Any thread. See `device::allocate`.
  result<std::unique_ptr<memory_region>> allocate(size_t size, access rights);

  /// Registers memory that the caller owns. Any thread. See `device::register_memory`.
  result<std::unique_ptr<memory_region>> register_memory(byte_span memory, access rights);

  /// Gives a token for one incoming link, to be told to the peer that may use it. `on_link` gets
  /// the link on the loop thread as soon as it is accepted (operations wait until it is open); the
  /// handlers belong to it. A token is good for one link. Any thread.
  uint64_t expect(memory_link::events handlers, std::function<void(link_ptr)> on_link);

  /// Forgets a token that was not used. Any thread.
  void forget(uint64_t token);

  /// Connects to a node that gave us `token`. `remote` has a numeric address. Loop thread only.
  result<link_ptr> connect(const endpoint& remote, uint64_t token,
                           std::chrono::milliseconds timeout, memory_link::events handlers);

  /// Handles a connection request of kind `memory`: rejects unknown tokens. Loop thread only.
  void on_request(connection_request& request, const gate::admission& whom);

private:
  struct expected_link {
    memory_link::events handlers;
    std::function<void(link_ptr)> on_link;
  };

  engine& loop_;
  std::mutex guard_;
  std::unordered_map<uint64_t, expected_link> expected_;
};

} // namespace troupe::transport
