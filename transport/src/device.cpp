#include "troupe/transport/device.hpp"

namespace troupe::transport {

std::string_view to_string(opcode op) noexcept {
  switch (op) {
  case opcode::send:
    return "send";
  case opcode::receive:
    return "receive";
  case opcode::write:
    return "write";
  case opcode::write_notify:
    return "write_notify";
  case opcode::read:
    return "read";
  case opcode::fetch_add:
    return "fetch_add";
  case opcode::compare_swap:
    return "compare_swap";
  }
  return "unknown";
}

} // namespace troupe::transport
