#include "connector.hpp"

#include "connection.hpp"
#include "troupe/transport/log.hpp"

#include <algorithm>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <system_error>

namespace troupe::transport::verbs {

namespace {

cm_event copy(const rdma_cm_event& from) {
  cm_event to;
  to.type = from.event;
  to.status = from.status;
  to.id = from.id;
  if (auto data = static_cast<const std::byte*>(from.param.conn.private_data))
    to.private_data.assign(data, data + from.param.conn.private_data_len);
  to.responder_resources = from.param.conn.responder_resources;
  to.initiator_depth = from.param.conn.initiator_depth;
  return to;
}

bool add(int poll_set, int fd) {
  epoll_event interest = {};
  interest.events = EPOLLIN;
  interest.data.fd = fd;
  return epoll_ctl(poll_set, EPOLL_CTL_ADD, fd, &interest) == 0;
}

} // namespace

leftover::leftover(std::shared_ptr<const completion_entries> entries, id_handle id,
                   id_queue_pair_handle queues)
    : entries_(std::move(entries)), id_(std::move(id)), queues_(std::move(queues)) {
  id_->context = static_cast<event_target*>(this);
}

result<std::shared_ptr<connector>> connector::create(std::shared_ptr<adapter> on) {
  std::shared_ptr<connector> made{new connector{std::move(on)}};
  if (auto opened = made->open(); !opened)
    return fail(opened.error());
  return made;
}

status connector::open() {
  channel_.reset(rdma_create_event_channel());
  if (!channel_ || !set_non_blocking(channel_->fd))
    return fail(system_error("rdma_create_event_channel for " + adapter_->name(), errno));
  timer_ = descriptor{timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)};
  poll_set_ = descriptor{epoll_create1(EPOLL_CLOEXEC)};
  if (timer_.get() < 0 || poll_set_.get() < 0 || !add(poll_set_.get(), channel_->fd) ||
      !add(poll_set_.get(), timer_.get()))
    return fail(system_error("event descriptors of " + adapter_->name(), errno));
  // siw's user library prints to stdout when such an event is taken; there they stay unread.
  if (!adapter_->is_iwarp() && (!set_non_blocking(adapter_->context()->async_fd) ||
                                !add(poll_set_.get(), adapter_->context()->async_fd)))
    return fail(system_error("asynchronous events of " + adapter_->name(), errno));
  return {};
}

result<id_handle> connector::make_id(event_target* target) {
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(channel_.get(), &id, target, RDMA_PS_TCP) != 0)
    return fail(system_error("rdma_create_id on " + adapter_->name(), errno));
  return id_handle{id};
}

std::optional<connection_event> connector::next() {
  if (announced_.empty())
    if (auto event = next_from_channel())
      return event;
  if (announced_.empty())
    if (auto event = next_expired())
      return event;
  std::optional<connection_event> event;
  if (!announced_.empty()) {
    event = std::move(announced_.front());
    announced_.pop_front();
  } else if (!adapter_->is_iwarp()) {
    log_adapter_events();
  }
  set_timer();
  return event;
}

std::optional<connection_event> connector::next_from_channel() {
  rdma_cm_event* raw = nullptr;
  while (rdma_get_cm_event(channel_.get(), &raw) == 0) {
    auto event = copy(*raw);
    auto receiver = event.type == RDMA_CM_EVENT_CONNECT_REQUEST ? raw->listen_id : raw->id;
    auto target = static_cast<event_target*>(receiver->context);
    log_for("verbs")->trace("{}: {} (status {})", adapter_->name(), rdma_event_str(event.type),
                            event.status);
    if (rdma_ack_cm_event(raw) != 0)
      log_release_failure("rdma_ack_cm_event", errno);
    if (target == nullptr)
      continue;
    if (auto told = target->on_event(event))
      return told;
    std::erase_if(leftovers_, [&](const auto& rest) { return rest.get() == target; });
  }
  if (errno != EAGAIN && errno != EINTR)
    log_for("verbs")->error("rdma_get_cm_event on {}: {}", adapter_->name(),
                            std::generic_category().message(errno));
  return std::nullopt;
}

std::optional<connection_event> connector::next_expired() {
  auto now = clock::now();
  for (auto user : std::vector{watched_}) // which `expire` may change
    if (auto event = user->expire(now))
      return event;
  return std::nullopt;
}

void connector::log_adapter_events() {
  ibv_async_event event = {};
  while (ibv_get_async_event(adapter_->context(), &event) == 0) {
    auto name = ibv_event_type_str(event.event_type);
    switch (event.event_type) {
    case IBV_EVENT_COMM_EST:
      // Data came before the connection manager's last message, which may be lost.
      if (auto id = static_cast<rdma_cm_id*>(event.element.qp->qp_context))
        rdma_notify(id, IBV_EVENT_COMM_EST);
      break;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      log_for("verbs")->debug("{}: queue pair {}: {}", adapter_->name(), event.element.qp->qp_num,
                              name);
      break;
    default:
      log_for("verbs")->warn("{}: {}", adapter_->name(), name);
    }
    ibv_ack_async_event(&event);
  }
}

void connector::announce(connection_event event) {
  announced_.push_back(std::move(event));
  set_timer();
}

void connector::watch(connection& user) {
  if (std::find(watched_.begin(), watched_.end(), &user) == watched_.end())
    watched_.push_back(&user);
  set_timer();
}

void connector::forget(const connection& user) {
  std::erase(watched_, &user);
  std::erase_if(announced_, [&](const connection_event& event) { return event.pair == &user; });
}

void connector::forget(const listener& source) {
  std::erase_if(announced_, [&](const connection_event& event) { return event.source == &source; });
}

void connector::set_timer() {
  auto now = clock::now();
  auto wake = clock::time_point::max();
  std::erase_if(watched_, [&](connection* user) {
    auto at = user->wake_at();
    if (!at)
      return true;
    wake = std::min(wake, *at);
    return false;
  });
  if (!announced_.empty())
    wake = now;
  itimerspec setting = {}; // all zero: disarmed
  if (wake != clock::time_point::max()) {
    auto left = wake > now ? std::chrono::nanoseconds{wake - now} : std::chrono::nanoseconds{1};
    setting.it_value.tv_sec = left.count() / 1'000'000'000;
    setting.it_value.tv_nsec = left.count() % 1'000'000'000;
  }
  // Setting it also takes back an expiry that was not read.
  if (timerfd_settime(timer_.get(), 0, &setting, nullptr) != 0)
    log_for("verbs")->error("timerfd_settime: {}", std::generic_category().message(errno));
}

} // namespace troupe::transport::verbs
