#include "caf/stream_doorman.hpp"

#include "caf/multiplexer.hpp"

#include <utility>

namespace troupe::transport {

stream_doorman::stream_doorman(multiplexer& owner, caf::io::accept_handle handle)
    : doorman(handle), owner_(owner) {}

stream_doorman::~stream_doorman() {
  if (port_)
    owner_.unlisten(std::move(port_));
}

void stream_doorman::attach(std::unique_ptr<listener> port) {
  port_ = std::move(port);
  local_ = port_->local();
}

void stream_doorman::on_request(std::unique_ptr<connection_request> request) {
  if (launched_)
    owner_.accept(*this, std::move(request));
  else
    early_.push_back(std::move(request));
}

bool stream_doorman::announce(caf::intrusive_ptr<stream_scribe> scribe) {
  if (detached())
    return false;
  auto handle = scribe->hdl();
  parent()->add_scribe(std::move(scribe));
  doorman::new_connection(&owner_, handle);
  return true;
}

bool stream_doorman::new_connection() {
  return !detached(); // CAF's acceptors call this; here `announce` does the work
}

void stream_doorman::launch() {
  launched_ = true;
  for (auto& request : std::exchange(early_, {}))
    owner_.accept(*this, std::move(request));
}

void stream_doorman::graceful_shutdown() {
  if (port_)
    owner_.unlisten(std::move(port_));
  early_.clear();
  detach(&owner_, false);
}

std::string stream_doorman::addr() const {
  return local_.host;
}

uint16_t stream_doorman::port() const {
  return local_.port;
}

void stream_doorman::add_to_loop() {}

void stream_doorman::remove_from_loop() {}

} // namespace troupe::transport
