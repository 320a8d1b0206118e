#include "soft/context.hpp"

#include "troupe/transport/log.hpp"

#include <algorithm>
#include <cerrno>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

namespace troupe::transport::soft {

namespace {

// Reports taken in one go; the rest waits for the next call.
constexpr int most_reports = 64;

} // namespace

result<std::shared_ptr<context>> context::make(std::shared_ptr<region_table> regions) {
  descriptor epoll{epoll_create1(EPOLL_CLOEXEC)};
  if (!epoll)
    return fail(system_error("epoll_create1", errno));
  descriptor timer{timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)};
  if (!timer)
    return fail(system_error("timerfd_create", errno));
  descriptor signal{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  if (!signal)
    return fail(system_error("eventfd", errno));
  for (auto each : {timer.get(), signal.get()}) {
    epoll_event interest{EPOLLIN, {.fd = each}};
    if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, each, &interest) != 0)
      return fail(system_error("epoll_ctl", errno));
  }
  return std::make_shared<context>(std::move(regions), std::move(epoll), std::move(timer),
                                   std::move(signal));
}

context::context(std::shared_ptr<region_table> regions, descriptor epoll, descriptor timer,
                 descriptor signal)
    : regions_(std::move(regions)), epoll_(std::move(epoll)), timer_(std::move(timer)),
      signal_(std::move(signal)) {}

context::~context() {
  close();
}

void context::close() {
  if (!closed_at_)
    closed_at_ = steady_clock::now();
  // What goes may refer back to this object.
  while (!events_.empty())
    events_.pop_front();
  while (!kept_.empty())
    kept_.extract(kept_.begin());
}

status context::watch(int descriptor, uint32_t events, watcher& who) {
  epoll_event interest{events, {.fd = descriptor}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &interest) != 0)
    return fail(system_error("epoll_ctl", errno));
  watchers_[descriptor] = &who;
  return {};
}

void context::change(int descriptor, uint32_t events, watcher& who) {
  epoll_event interest{events, {.fd = descriptor}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, descriptor, &interest) != 0)
    log_for("soft")->error(system_error("epoll_ctl", errno).text());
  watchers_[descriptor] = &who;
}

void context::forget(int descriptor) {
  if (watchers_.erase(descriptor) > 0)
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
}

void context::await_deadline(watcher& who) {
  if (std::find(waiting_.begin(), waiting_.end(), &who) == waiting_.end())
    waiting_.push_back(&who);
  auto due = who.deadline();
  if (due && (!timer_at_ || *due < *timer_at_))
    set_timer(due);
}

void context::forget_deadline(watcher& who) {
  // The timer may fire for nobody; that finds the next one.
  std::erase(waiting_, &who);
}

void context::keep(std::unique_ptr<watcher> who) {
  auto key = who.get();
  kept_[key] = std::move(who);
}

void context::release(watcher& who) {
  // Taken out first: its destructor may call back.
  kept_.extract(&who);
}

void context::push(connection_event event) {
  events_.push_back(std::move(event));
  if (!dispatching_)
    signal();
}

void context::signal() {
  if (signalled_)
    return;
  signalled_ = true;
  uint64_t one = 1;
  [[maybe_unused]] auto ignored = ::write(signal_.get(), &one, sizeof one);
}

void context::drop_events_of(const queue_pair* pair) {
  std::erase_if(events_, [pair](const auto& event) { return event.pair == pair; });
}

void context::drop_events_of(const listener* source) {
  std::erase_if(events_, [source](const auto& event) { return event.source == source; });
}

std::optional<connection_event> context::next_event() {
  if (events_.empty()) {
    if (signalled_) {
      uint64_t count = 0;
      [[maybe_unused]] auto ignored = ::read(signal_.get(), &count, sizeof count);
      signalled_ = false;
    }
    dispatch();
  }
  if (events_.empty())
    return std::nullopt;
  auto event = std::move(events_.front());
  events_.pop_front();
  if (!events_.empty())
    signal();
  return event;
}

void context::dispatch() {
  dispatching_ = true;
  // One at a time, because a watcher may destroy another.
  for (int i = 0; i < most_reports; ++i) {
    epoll_event report{};
    if (epoll_wait(epoll_.get(), &report, 1, 0) != 1)
      break;
    if (report.data.fd == timer_.get())
      expire();
    else if (auto found = watchers_.find(report.data.fd); found != watchers_.end())
      found->second->on_ready(report.data.fd, report.events);
  }
  dispatching_ = false;
}

void context::expire() {
  uint64_t count = 0;
  [[maybe_unused]] auto ignored = ::read(timer_.get(), &count, sizeof count);
  timer_at_.reset();
  auto now = steady_clock::now();
  for (bool again = true; again;) {
    again = false;
    for (auto who : waiting_) {
      if (auto due = who->deadline(); due && *due > now)
        continue;
      std::erase(waiting_, who);
      if (who->deadline())
        who->on_deadline();
      again = true;
      break;
    }
  }
  std::optional<steady_clock::time_point> earliest;
  for (auto who : waiting_)
    if (auto due = who->deadline(); due && (!earliest || *due < *earliest))
      earliest = due;
  set_timer(earliest);
}

void context::set_timer(std::optional<steady_clock::time_point> earliest) {
  timer_at_ = earliest;
  itimerspec when{};
  if (earliest) {
    // steady_clock is CLOCK_MONOTONIC; a moment of 0 would switch the timer off.
    auto since = std::max(earliest->time_since_epoch(), steady_clock::duration{1});
    auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since);
    when.it_value.tv_sec = static_cast<time_t>(seconds.count());
    when.it_value.tv_nsec = static_cast<long>(std::chrono::nanoseconds{since - seconds}.count());
  }
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

} // namespace troupe::transport::soft
