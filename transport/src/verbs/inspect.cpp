#include "inspect.hpp"

#include "verbs_device.hpp"

#include <algorithm>
#include <cstring>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <system_error>

namespace troupe::transport::verbs {

const char* const memlock_remedy =
    "raise it with `ulimit -l unlimited` or LimitMEMLOCK=infinity in the unit";

std::string memlock_limit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return "unlimited";
  if (limit.rlim_cur >= (1U << 20))
    return std::to_string(limit.rlim_cur >> 20) + " MiB";
  return std::to_string(limit.rlim_cur >> 10) + " KiB";
}

namespace {

std::string describe(int errno_value) {
  return std::generic_category().message(errno_value);
}

/// An address of this machine and the adapter that rdma_cm maps it to.
struct mapped_address {
  std::string adapter;
  socket_address address;
};

/// Asks rdma_cm itself, so that InfiniBand, RoCE and iWARP need no rules of their own.
std::vector<mapped_address> map_addresses(std::string& failure) {
  std::vector<mapped_address> result;
  event_channel_handle channel{rdma_create_event_channel()};
  if (!channel) {
    failure =
        "rdma_cm is not available (" + describe(errno) + "); load it with `modprobe rdma_ucm`";
    return result;
  }
  ifaddrs* raw = nullptr;
  if (getifaddrs(&raw) != 0) {
    failure = "getifaddrs: " + describe(errno);
    return result;
  }
  std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> all{raw, &freeifaddrs};
  for (auto entry = all.get(); entry != nullptr; entry = entry->ifa_next) {
    socket_address address{entry->ifa_addr};
    if (address.family() == AF_UNSPEC || (entry->ifa_flags & IFF_UP) == 0 ||
        address.is_loopback() || address.is_link_local())
      continue;
    rdma_cm_id* id = nullptr;
    if (rdma_create_id(channel.get(), &id, nullptr, RDMA_PS_TCP) != 0) {
      failure = "rdma_create_id: " + describe(errno);
      return result;
    }
    id_handle owner{id};
    address.set_port(0);
    if (rdma_bind_addr(id, address.raw()) == 0 && id->verbs != nullptr)
      result.push_back({ibv_get_device_name(id->verbs->device), address});
  }
  return result;
}

/// Whether an arena of a useful size can be registered at all.
bool memory_can_be_registered(ibv_context* context) {
  constexpr size_t probe = size_t{16} << 20;
  rlimit limit = {};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY)
    return true;
  domain_handle domain{ibv_alloc_pd(context)};
  if (!domain)
    return false;
  auto memory = mmap(nullptr, probe, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return false;
  int rights = IBV_ACCESS_LOCAL_WRITE;
  memory_handle region{ibv_reg_mr(domain.get(), memory, probe, rights)};
  bool registered = region != nullptr;
  region.reset();
  munmap(memory, probe);
  return registered;
}

std::string kind_of(const ibv_device& device, const ibv_port_attr& port) {
  if (device.transport_type == IBV_TRANSPORT_IWARP)
    return "iWARP";
  return port.link_layer == IBV_LINK_LAYER_ETHERNET ? "RoCE" : "InfiniBand";
}

void inspect(ibv_device& device, adapter_report& report, const std::string& mapping_failure) {
  device_context_handle context{ibv_open_device(&device)};
  if (!context) {
    report.detail =
        "cannot be opened (" + describe(errno) + "); check the rights on /dev/infiniband/uverbs*";
    return;
  }
  ibv_device_attr attributes = {};
  if (int rc = ibv_query_device(context.get(), &attributes); rc != 0) {
    report.detail = "ibv_query_device: " + describe(rc);
    return;
  }
  ibv_port_attr port = {};
  bool active = false;
  for (int number = 1; number <= attributes.phys_port_cnt && !active; ++number)
    active = ibv_query_port(context.get(), static_cast<uint8_t>(number), &port) == 0 &&
             port.state == IBV_PORT_ACTIVE;
  if (!active) {
    report.detail = "no active port; connect the cable or bring its network interface up";
    return;
  }
  if (report.addresses.empty()) {
    report.detail = mapping_failure.empty()
                        ? "no IP address on its network interface; add one with `ip addr add`"
                        : mapping_failure;
    return;
  }
  if (!memory_can_be_registered(context.get())) {
    report.detail = "16 MiB of memory cannot be registered (RLIMIT_MEMLOCK is " + memlock_limit() +
                    "; " + memlock_remedy + ")";
    return;
  }
  report.usable = true;
  report.detail = kind_of(device, port) + " adapter " + report.name + " at " +
                  report.addresses.front().host() + ", memlock limit " + memlock_limit();
}

} // namespace

std::vector<adapter_report> inspect_adapters() {
  std::vector<adapter_report> result;
  int count = 0;
  // Kernels before 5.12 let a fork take registered pages away from us, which libibverbs prevents if
  // it is told so before all else. Newer ones need no help; it would keep the pages from children.
  if (ibv_is_fork_initialized() == IBV_FORK_DISABLED)
    ibv_fork_init();
  // A kernel without RDMA makes this fail; that is a machine without adapters.
  device_list_handle list{ibv_get_device_list(&count)};
  if (!list || count == 0)
    return result;
  std::string mapping_failure;
  auto mapped = map_addresses(mapping_failure);
  for (int index = 0; index < count; ++index) {
    auto& device = *list.get()[index];
    adapter_report report;
    report.name = ibv_get_device_name(&device);
    for (const auto& entry : mapped)
      if (entry.adapter == report.name)
        report.addresses.push_back(entry.address);
    inspect(device, report, mapping_failure);
    result.push_back(std::move(report));
  }
  return result;
}

} // namespace troupe::transport::verbs

namespace troupe::transport {

std::vector<device_candidate> list_verbs_devices() {
  std::vector<device_candidate> result;
  for (auto& report : verbs::inspect_adapters())
    result.push_back({"verbs:" + report.name, report.usable,
                      report.addresses.empty() ? "" : report.addresses.front().host(),
                      report.detail});
  std::stable_partition(result.begin(), result.end(),
                        [](const device_candidate& candidate) { return candidate.usable; });
  return result;
}

} // namespace troupe::transport
