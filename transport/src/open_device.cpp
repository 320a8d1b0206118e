#include "troupe/transport/open_device.hpp"

#include "soft/soft_device.hpp"
#include "verbs/verbs_device.hpp"

#include <cstdlib>

namespace troupe::transport {

namespace {

constexpr std::string_view verbs_prefix = "verbs:";

std::string describe(const std::vector<device_candidate>& candidates) {
  std::string text;
  for (const auto& candidate : candidates) {
    text += text.empty() ? "" : "; ";
    text += candidate.name + " (" + candidate.detail + ")";
  }
  return text;
}

tl::unexpected<error> no_such_device(std::string_view name) {
  return fail(errc::no_such_device, "no device '" + std::string{name} +
                                        "'; this machine has: " + describe(list_devices()));
}

result<device_choice> open_verbs(const std::string& name, std::string reason) {
  auto opened = open_verbs_device(name);
  if (!opened)
    return fail(opened.error());
  return device_choice{std::move(*opened), std::move(reason)};
}

result<device_choice> open_soft(soft_mode mode, std::string reason) {
  auto opened = open_soft_device(mode);
  if (!opened)
    return fail(opened.error());
  return device_choice{std::move(*opened), std::move(reason)};
}

const device_candidate* first_usable(const std::vector<device_candidate>& candidates) {
  for (const auto& candidate : candidates)
    if (candidate.usable)
      return &candidate;
  return nullptr;
}

} // namespace

std::vector<device_candidate> list_devices() {
  auto found = list_verbs_devices();
  found.push_back(
      {"soft", true, "", "no adapter needed: shared memory within a host, TCP between hosts"});
  return found;
}

result<device_choice> open_device(std::string_view name, device_scope scope) {
  std::string origin = "asked for";
  if (auto text = std::getenv("TROUPE_DEVICE")) {
    name = text;
    origin = "TROUPE_DEVICE asks for it";
  }
  if (name == "auto" && scope == device_scope::this_machine)
    return open_soft(soft_mode::automatic, "without a key only this machine is reached");
  if (name == "auto" || name == "verbs") {
    auto adapters = list_verbs_devices();
    if (auto adapter = first_usable(adapters))
      return open_verbs(adapter->name.substr(verbs_prefix.size()),
                        "the first usable adapter: " + adapter->detail);
    if (name == "verbs")
      return no_such_device(name);
    return open_soft(soft_mode::automatic, adapters.empty()
                                               ? "this machine has no RDMA adapter"
                                               : "no adapter is usable: " + describe(adapters));
  }
  if (name.starts_with(verbs_prefix))
    return open_verbs(std::string{name.substr(verbs_prefix.size())}, origin);
  if (name == "soft")
    return open_soft(soft_mode::automatic, origin);
  if (name == "soft:tcp")
    return open_soft(soft_mode::tcp_only, origin);
  return no_such_device(name);
}

} // namespace troupe::transport
