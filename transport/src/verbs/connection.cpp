#include "connection.hpp"

#include "troupe/transport/log.hpp"

#include <algorithm>
#include <system_error>

namespace troupe::transport::verbs {

namespace {

using namespace std::chrono_literals;

// A stopped or vanished peer never answers a disconnect.
constexpr auto close_patience = 5s;

constexpr uint8_t retries = 7;           // the most; the adapter's time-out decides how long
constexpr uint8_t not_ready_retries = 7; // without end: a slow receiver is not a dead peer
constexpr uint8_t not_ready_wait = 12;   // code of 0.64 ms (InfiniBand specification, table 45)

std::string text_of_errno(int value) {
  return std::generic_category().message(value < 0 ? -value : value);
}

error refusal(const std::string& what, const cm_event& event) {
  // A positive status is a reason code of the InfiniBand connection manager.
  constexpr int invalid_service_id = 8;
  constexpr int consumer_defined = 28;
  if (event.status == invalid_service_id)
    return {errc::refused, what + ": refused, nobody listens there"};
  if (event.status == consumer_defined)
    return {errc::refused, what + ": refused by the listener"};
  if (event.status < 0)
    return {errc::refused, what + ": " + text_of_errno(event.status)};
  return {errc::refused, what + ": refused with reason code " + std::to_string(event.status)};
}

} // namespace

connection::connection(std::shared_ptr<connector> events, id_handle id, completions& queue,
                       uint32_t send_depth, uint32_t receive_depth)
    : adapter_(events->shared_adapter()), events_(std::move(events)), completions_(queue),
      id_(std::move(id)), sends_(send_depth, adapter_->header_bytes() > 0 ? 2 : 1, false),
      receives_(receive_depth, 1, true) {}

result<std::unique_ptr<connection>> connection::create(std::shared_ptr<connector> events,
                                                       id_handle id,
                                                       const queue_pair_config& config) {
  if (config.completions == nullptr)
    return fail(errc::invalid_argument, "a queue pair needs a completion queue");
  auto most = events->shared_adapter()->limits().max_depth;
  id->context = nullptr;
  std::unique_ptr<connection> made{new connection{
      std::move(events), std::move(id), static_cast<completions&>(*config.completions),
      std::clamp(config.send_depth, 1U, most), std::clamp(config.receive_depth, 1U, most)}};
  auto domain = config.one_sided ? made->adapter_->domain() : made->adapter_->empty_domain();
  if (auto done = made->make_queues(domain); !done)
    return fail(done.error());
  made->id_->context = static_cast<event_target*>(made.get());
  return made;
}

status connection::make_queues(ibv_pd* domain) {
  auto entered = completions_.enter(*this, sends_.slots() + receives_.slots());
  if (!entered)
    return fail(entered.error());
  owner_ = *entered;
  if (auto bytes = adapter_->header_bytes(); bytes > 0) {
    auto made =
        region::allocate(adapter_, (sends_.slots() + receives_.slots()) * bytes, access::local);
    if (!made)
      return fail(made.error());
    headers_ = std::move(*made);
  }
  auto parts = headers_ ? 2U : 1U;
  ibv_qp_init_attr attributes = {};
  attributes.qp_context = id_.get();
  attributes.send_cq = completions_.raw();
  attributes.recv_cq = completions_.raw();
  attributes.qp_type = IBV_QPT_RC;
  attributes.cap = {sends_.slots(), receives_.slots(), parts, parts, adapter_->raw_inline()};
  if (rdma_create_qp(id_.get(), domain, &attributes) != 0) {
    auto cause = errno;
    auto text = "rdma_create_qp of " + std::to_string(sends_.slots()) + " + " +
                std::to_string(receives_.slots()) + " entries on " + adapter_->name();
    return fail(system_error(text, cause));
  }
  queues_.reset(id_.get());
  return {};
}

connection::~connection() {
  bool blocks = awaits_outcome_ && adapter_->is_iwarp();
  if (blocks)
    fail_work(true); // nothing may land in memory that is no longer ours
  if (phase_ == phase::established)
    rdma_disconnect(id_.get());
  events_->forget(*this);
  if (!blocks)
    queues_.reset(); // no completion of ours is added after this
  completions_.leave(owner_);
  if (blocks)
    events_->retire(
        std::make_unique<leftover>(completions_.entries(), std::move(id_), std::move(queues_)));
}

// -- set-up
// ----------------------------------------------------------------------------------------------

rdma_conn_param connection::parameters(byte_view private_data) const {
  rdma_conn_param result = {};
  result.private_data = private_data.data();
  result.private_data_len = static_cast<uint8_t>(private_data.size());
  result.responder_resources = static_cast<uint8_t>(adapter_->limits().max_reads);
  result.initiator_depth = static_cast<uint8_t>(adapter_->limits().max_reads);
  result.retry_count = retries;
  result.rnr_retry_count = not_ready_retries;
  return result;
}

int connection::milliseconds_left() const {
  auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline_ - clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 1, 3'600'000));
}

status connection::start_connect(const socket_address& remote, byte_view private_data,
                                 std::chrono::milliseconds timeout) {
  phase_ = phase::connecting;
  remote_ = remote;
  offered_.assign(private_data.begin(), private_data.end());
  deadline_ = clock::now() + std::max(timeout, 1ms);
  if (rdma_resolve_addr(id_.get(), nullptr, remote_.raw(), milliseconds_left()) != 0)
    return fail(system_error(
        "connect to " + to_string(remote_.to_endpoint()) + " through " + adapter_->name(), errno));
  events_->watch(*this);
  return {};
}

void connection::start_accept(byte_view private_data, const cm_event& request) {
  phase_ = phase::accepting;
  answer_due_ = true;
  offered_.assign(private_data.begin(), private_data.end());
  most_reads_here_ = request.responder_resources;
  most_reads_there_ = request.initiator_depth;
  events_->watch(*this);
}

std::optional<connection_event> connection::answer() {
  answer_due_ = false;
  if (phase_ != phase::accepting)
    return std::nullopt;
  auto with = parameters(offered_);
  with.responder_resources = std::min(with.responder_resources, most_reads_here_);
  with.initiator_depth = std::min(with.initiator_depth, most_reads_there_);
  if (rdma_accept(id_.get(), &with) != 0)
    return closed("it could not be accepted (" + text_of_errno(errno) + ")");
  tune();
  return std::nullopt;
}

void connection::tune() {
  if (adapter_->is_iwarp())
    return;
  // rdma_cm leaves the time between "receiver not ready" retries at its longest, 0.66 s.
  ibv_qp_attr attributes = {};
  attributes.min_rnr_timer = not_ready_wait;
  if (int rc = ibv_modify_qp(id_->qp, &attributes, IBV_QP_MIN_RNR_TIMER); rc != 0)
    log_for("verbs")->debug("{}: receiver-not-ready timer stays as it is: {}", adapter_->name(),
                            text_of_errno(rc));
}

std::optional<connection_event> connection::on_event(cm_event& event) {
  awaits_outcome_ = false; // set below when a new step is taken
  auto what = [&] {
    return "connect to " + to_string(remote_.to_endpoint()) + " through " + adapter_->name();
  };
  switch (event.type) {
  case RDMA_CM_EVENT_ADDR_RESOLVED:
    if (phase_ == phase::connecting && rdma_resolve_route(id_.get(), milliseconds_left()) != 0)
      return failed(system_error(what(), errno));
    return std::nullopt;
  case RDMA_CM_EVENT_ROUTE_RESOLVED: {
    if (phase_ != phase::connecting)
      return std::nullopt;
    auto with = parameters(offered_);
    if (rdma_connect(id_.get(), &with) != 0)
      return failed(system_error(what(), errno));
    awaits_outcome_ = true;
    return std::nullopt;
  }
  case RDMA_CM_EVENT_ADDR_ERROR:
  case RDMA_CM_EVENT_ROUTE_ERROR:
    return failed({errc::unreachable, what() + ": no route (" + text_of_errno(event.status) + ")"});
  case RDMA_CM_EVENT_UNREACHABLE:
    return failed({errc::unreachable, what() + ": no answer"});
  case RDMA_CM_EVENT_CONNECT_ERROR:
    return failed(event.status < 0 ? system_error(what(), -event.status)
                                   : error{errc::unreachable, what() + ": broke during set-up"});
  case RDMA_CM_EVENT_REJECTED: {
    auto told = failed(refusal(what(), event));
    // Soft-RoCE hands out zero bytes where the peer gave nothing.
    bool given = std::any_of(event.private_data.begin(), event.private_data.end(),
                             [](std::byte value) { return value != std::byte{0}; });
    if (told && given)
      told->private_data = std::move(event.private_data);
    return told;
  }
  case RDMA_CM_EVENT_ESTABLISHED: {
    if (phase_ != phase::connecting && phase_ != phase::accepting)
      return std::nullopt;
    if (phase_ == phase::connecting)
      tune();
    phase_ = phase::established;
    deadline_.reset();
    connection_event told;
    told.what = connection_event::kind::established;
    told.pair = this;
    told.private_data = std::move(event.private_data);
    return told;
  }
  case RDMA_CM_EVENT_DISCONNECTED:
    return closed("closed");
  case RDMA_CM_EVENT_DEVICE_REMOVAL:
    return closed("the adapter was removed");
  default:
    return std::nullopt;
  }
}

std::optional<connection_event> connection::failed(error reason) {
  if (phase_ == phase::accepting)
    return closed("the peer gave up during set-up");
  if (phase_ != phase::connecting)
    return std::nullopt;
  phase_ = phase::closed;
  deadline_.reset();
  fail_work(true);
  connection_event told;
  told.what = connection_event::kind::failed;
  told.pair = this;
  told.reason = std::move(reason);
  return told;
}

std::optional<connection_event> connection::closed(const std::string& why) {
  if (phase_ == phase::closed)
    return std::nullopt;
  if (phase_ == phase::connecting)
    return failed(
        {errc::disconnected, "connect to " + to_string(remote_.to_endpoint()) + ": " + why});
  auto text = "connection to " + to_string(peer()) + " through " + adapter_->name() + ": " +
              (breach_.empty() ? why : breach_);
  if (phase_ != phase::closing)
    rdma_disconnect(id_.get()); // answers the peer; fails when there is nobody left to tell
  phase_ = phase::closed;
  deadline_.reset();
  fail_work(true);
  connection_event told;
  told.what = connection_event::kind::disconnected;
  told.pair = this;
  told.reason = {errc::disconnected, std::move(text)};
  return told;
}

void connection::disconnect() {
  if (phase_ == phase::closing || phase_ == phase::closed)
    return;
  if (phase_ == phase::connecting) {
    if (auto event = failed(
            {errc::disconnected, "connect to " + to_string(remote_.to_endpoint()) + ": given up"}))
      events_->announce(std::move(*event));
    return;
  }
  start_close();
  // iWARP closes its stream in order first, then the disconnected event comes.
  fail_work(!adapter_->is_iwarp());
}

void connection::start_close() {
  phase_ = phase::closing;
  deadline_ = clock::now() + close_patience;
  if (rdma_disconnect(id_.get()) != 0)
    log_for("verbs")->debug("{}: rdma_disconnect: {}", adapter_->name(), text_of_errno(errno));
  events_->watch(*this);
}

void connection::give_up(std::string why) {
  fail_work(true);
  if (phase_ != phase::established && phase_ != phase::accepting)
    return;
  breach_ = std::move(why);
  if (!breach_.empty())
    log_for("verbs")->info("{}: connection to {} is given up: {}", adapter_->name(),
                           to_string(peer()), breach_);
  start_close();
}

endpoint connection::peer() const {
  if (phase_ == phase::connecting)
    return {};
  return socket_address{rdma_get_peer_addr(id_.get())}.to_endpoint();
}

std::optional<clock::time_point> connection::wake_at() const {
  if (answer_due_)
    return clock::time_point::min();
  if (flush_deadline_ && !flush_woken_)
    return deadline_ ? std::min(*deadline_, *flush_deadline_) : *flush_deadline_;
  return deadline_;
}

std::optional<connection_event> connection::expire(clock::time_point now) {
  if (answer_due_)
    return answer();
  // The wake-up alone lets the loop poll the completion queue, which settles the work.
  if (flush_deadline_ && now >= *flush_deadline_)
    flush_woken_ = true;
  if (!deadline_ || now < *deadline_)
    return std::nullopt;
  deadline_.reset();
  if (phase_ == phase::closing)
    return closed("the peer did not answer the disconnect");
  return failed({errc::timeout, "connect to " + to_string(remote_.to_endpoint()) + " through " +
                                    adapter_->name() + ": no answer in time"});
}

} // namespace troupe::transport::verbs
