#include "troupe/framework/node_info.hpp"

#include <algorithm>
#include <random>

namespace troupe {

incarnation_id make_incarnation() {
  std::random_device source;
  incarnation_id value = 0;
  while (value == 0)
    value = incarnation_id{source()} << 32 | source();
  return value;
}

std::string format_incarnation(incarnation_id value) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text(16, '0');
  for (auto at = text.rbegin(); at != text.rend(); ++at, value >>= 4)
    *at = digits[value & 15];
  return text;
}

bool is_node_id(std::string_view text) noexcept {
  return !text.empty() && text.size() <= 63 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

std::string to_string(node_roles roles) {
  if (roles.controller && roles.worker)
    return "controller,worker";
  return roles.controller ? "controller" : roles.worker ? "worker" : "";
}

} // namespace troupe
