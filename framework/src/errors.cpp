#include "troupe/framework/errors.hpp"

#include <caf/atom.hpp>
#include <caf/exit_reason.hpp>
#include <caf/make_message.hpp>
#include <caf/sec.hpp>
#include <string>

namespace troupe {

namespace {

constexpr auto category = caf::atom("troupe");

errc code_of(const caf::error& e) {
  if (e.category() == caf::atom("exit"))
    return errc::disconnected;
  if (e.category() != caf::atom("system"))
    return errc::system;
  switch (static_cast<caf::sec>(e.code())) {
  case caf::sec::request_timeout:
  case caf::sec::connection_timeout:
    return errc::timeout;
  case caf::sec::cannot_connect_to_node:
    return errc::unreachable;
  case caf::sec::cannot_open_port:
    return errc::address_in_use;
  case caf::sec::request_receiver_down:
  case caf::sec::disconnect_during_handshake:
  case caf::sec::no_route_to_receiving_node:
    return errc::disconnected;
  case caf::sec::unexpected_message:
  case caf::sec::unexpected_response:
    return errc::protocol_violation;
  default:
    return errc::system;
  }
}

} // namespace

caf::error to_caf(const error& e) {
  return {static_cast<uint8_t>(e.code()), category, caf::make_message(e.text())};
}

error to_troupe(caf::actor_system& system, const caf::error& e) {
  auto& context = e.context();
  auto has_text = !context.empty() && context.match_element<std::string>(0);
  auto text = has_text ? context.get_as<std::string>(0) : system.render(e);
  auto known = [](uint8_t code) { return code <= static_cast<uint8_t>(errc::system); };
  if (e.category() == category && known(e.code()))
    return {static_cast<errc>(e.code()), text};
  // Our network backend can only answer with CAF's codes; its own stands behind host and port.
  if (context.size() == 4 && context.match_element<uint8_t>(3) && known(context.get_as<uint8_t>(3)))
    return {static_cast<errc>(context.get_as<uint8_t>(3)), text};
  return {code_of(e), text};
}

} // namespace troupe
