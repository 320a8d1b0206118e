#include "adapter.hpp"

#include "inspect.hpp"
#include "message_header.hpp"
#include "troupe/transport/log.hpp"

#include <algorithm>
#include <climits>

namespace troupe::transport::verbs {

namespace {

// More than any of our queues needs; adapters with larger ones lose nothing.
constexpr uint32_t depth_ceiling = 8192;
constexpr uint64_t message_ceiling = uint64_t{1} << 30;
constexpr uint32_t reads_ceiling = 16;
constexpr uint32_t inline_wish = 256;

uint32_t positive(int value) {
  return value > 0 ? static_cast<uint32_t>(value) : 0;
}

/// The adapter's largest inline size up to `inline_wish`. There is no attribute for it: try.
uint32_t probe_inline(ibv_context* context, ibv_pd* domain) {
  completion_queue_handle completions{ibv_create_cq(context, 16, nullptr, nullptr, 0)};
  if (!completions)
    return 0;
  for (uint32_t wish : {inline_wish, 224U, 128U, 96U, 80U, 64U, 32U}) {
    ibv_qp_init_attr attributes = {};
    attributes.send_cq = completions.get();
    attributes.recv_cq = completions.get();
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap = {4, 4, 2, 2, wish};
    if (bare_queue_pair_handle pair{ibv_create_qp(domain, &attributes)};
        pair && attributes.cap.max_inline_data >= wish)
      return wish;
  }
  return 0;
}

std::string names(const std::vector<adapter_report>& reports) {
  std::string text;
  for (const auto& report : reports)
    text += (text.empty() ? "" : ", ") + report.name;
  return text;
}

} // namespace

result<std::shared_ptr<adapter>> adapter::open(const std::string& name) {
  auto reports = inspect_adapters();
  auto found = std::find_if(reports.begin(), reports.end(),
                            [&](const adapter_report& report) { return report.name == name; });
  if (found == reports.end())
    return fail(errc::no_such_device,
                "no RDMA device '" + name + "'; this machine has " +
                    (reports.empty() ? "none (`rdma link` lists them)" : names(reports)));
  if (!found->usable)
    return fail(errc::no_such_device,
                "RDMA device '" + name + "' cannot be used: " + found->detail);
  std::shared_ptr<adapter> opened{new adapter};
  opened->name_ = name;
  opened->addresses_ = found->addresses;
  opened->anchor_channel_.reset(rdma_create_event_channel());
  if (!opened->anchor_channel_)
    return fail(system_error("rdma_create_event_channel for " + name, errno));
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(opened->anchor_channel_.get(), &id, nullptr, RDMA_PS_TCP) != 0)
    return fail(system_error("rdma_create_id for " + name, errno));
  opened->anchor_.reset(id);
  if (rdma_bind_addr(id, opened->addresses_.front().raw()) != 0 || id->verbs == nullptr)
    return fail(system_error("rdma_bind_addr to " + opened->addresses_.front().host(), errno));
  opened->domain_.reset(ibv_alloc_pd(id->verbs));
  opened->empty_domain_.reset(ibv_alloc_pd(id->verbs));
  if (!opened->domain_ || !opened->empty_domain_)
    return fail(system_error("ibv_alloc_pd on " + name, errno));
  if (auto loaded = opened->load_limits(); !loaded)
    return fail(loaded.error());
  return opened;
}

status adapter::load_limits() {
  ibv_device_attr attributes = {};
  if (int rc = ibv_query_device(context(), &attributes); rc != 0)
    return fail(system_error("ibv_query_device on " + name_, rc));
  ibv_port_attr port = {};
  if (int rc = ibv_query_port(context(), anchor_->port_num, &port); rc != 0)
    return fail(system_error("ibv_query_port on " + name_, rc));
  header_bytes_ = is_iwarp() ? message_header::bytes : 0;
  raw_inline_ = probe_inline(context(), domain());
  raw_completions_ = positive(attributes.max_cqe);
  // An emulated write_notify takes two entries, each of which may complete with an error.
  auto shares = is_iwarp() ? 2U : 1U;
  limits_.max_message =
      std::min<uint64_t>(port.max_msg_sz != 0 ? port.max_msg_sz : UINT_MAX, message_ceiling) -
      header_bytes_;
  limits_.max_inline =
      raw_inline_ > header_bytes_ ? raw_inline_ - static_cast<uint32_t>(header_bytes_) : 0;
  // A quarter more than the depth is used to keep unsignaled work from filling the queue.
  limits_.max_depth = std::min(positive(attributes.max_qp_wr) / shares * 4 / 5, depth_ceiling);
  limits_.max_completions = raw_completions_ / shares;
  limits_.max_reads = std::clamp(
      std::min(positive(attributes.max_qp_rd_atom), positive(attributes.max_qp_init_rd_atom)), 1U,
      reads_ceiling);
  limits_.atomics = attributes.atomic_cap != IBV_ATOMIC_NONE;
  limits_.native_immediate = !is_iwarp();
  log_for("verbs")->debug("{}: message {} B, inline {} B, depth {}, completions {}, reads {}",
                          name_, limits_.max_message, limits_.max_inline, limits_.max_depth,
                          limits_.max_completions, limits_.max_reads);
  return {};
}

const socket_address& adapter::address_for(int family) const noexcept {
  for (const auto& address : addresses_)
    if (address.family() == family)
      return address;
  return addresses_.front();
}

socket_address adapter::without_loopback(const socket_address& address) const {
  if (!address.is_loopback())
    return address;
  auto own = address_for(address.family());
  own.set_port(address.port());
  return own;
}

} // namespace troupe::transport::verbs
