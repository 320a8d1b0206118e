#include "troupe/transport/engine.hpp"

#include "troupe/transport/log.hpp"
#include "troupe/transport/open_device.hpp"

#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <utility>

namespace troupe::transport {

namespace {

constexpr uint32_t turns_between_looks = 64;
constexpr uint32_t wanted_completions = 32767; // what rxe can do at most; 2 MiB on an adapter

void consume_counter(int fd) {
  uint64_t count = 0;
  [[maybe_unused]] auto n = ::read(fd, &count, sizeof count); // EAGAIN: somebody was faster
}

} // namespace

result<std::unique_ptr<engine>> engine::open(std::string_view device_name, shared_key_ptr key) {
  auto choice = open_device(device_name, key ? device_scope::network : device_scope::this_machine);
  if (!choice)
    return fail(choice.error());
  auto depth = std::min(wanted_completions, choice->opened->limits().max_completions);
  auto completions = choice->opened->create_completion_queue(depth);
  if (!completions)
    return fail(completions.error());
  std::unique_ptr<engine> made{new engine{std::move(choice->opened), std::move(choice->reason),
                                          std::move(*completions), depth, std::move(key)}};
  if (made->wake_fd_ < 0 || made->alarm_fd_ < 0)
    return fail(system_error("eventfd or timerfd for the event loop", errno));
  return made;
}

engine::engine(std::unique_ptr<device> opened, std::string choice,
               std::unique_ptr<completion_queue> completions, uint32_t completion_room,
               shared_key_ptr key)
    : device_(std::move(opened)), choice_(std::move(choice)), completions_(std::move(completions)),
      completion_room_(completion_room), gate_(std::move(key)),
      wake_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      alarm_fd_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {}

engine::~engine() {
  retired_.clear();
  if (wake_fd_ >= 0)
    ::close(wake_fd_);
  if (alarm_fd_ >= 0)
    ::close(alarm_fd_);
}

// -- connections
// ------------------------------------------------------------------------------------

result<queue_pair_config> engine::reserve_queues(uint32_t send_depth, uint32_t receive_depth) {
  auto most = device_->limits().max_depth;
  queue_pair_config queues{completions_.get(), std::min(send_depth, most),
                           std::min(receive_depth, most)};
  auto entries = queues.send_depth + queues.receive_depth;
  if (entries > completion_room_)
    return fail(errc::limit_too_low,
                "the completion queue of " + device_->name() + " is full: too many connections");
  completion_room_ -= entries;
  return queues;
}

result<std::unique_ptr<queue_pair>>
engine::connect(const endpoint& remote, const queue_pair_config& queues, byte_view private_data,
                std::chrono::milliseconds timeout, connection_handler& handler) {
  auto pair = device_->connect(remote, queues, private_data, timeout);
  if (pair)
    (*pair)->owner = &handler;
  events_waiting_ = true;
  return pair;
}

result<std::unique_ptr<listener>> engine::listen(const endpoint& local,
                                                 request_handler on_request) {
  auto where = local;
  if (!gate_.key() && where.host.empty())
    where.host = loopback_host;
  auto made = device_->listen(where);
  if (made && !gate_.key() && !is_loopback((*made)->local()))
    return fail(errc::unauthenticated,
                "listening on " + to_string((*made)->local()) +
                    " without a key would let anybody in who reaches that address: " +
                    std::string{key_remedy} + "; or listen on 127.0.0.1 with the soft device");
  if (made)
    listeners_.emplace(made->get(), std::move(on_request));
  return made;
}

void engine::unlisten(std::unique_ptr<listener> which) {
  listeners_.erase(which.get());
}

void engine::retire(std::unique_ptr<queue_pair> pair, const queue_pair_config& queues,
                    std::shared_ptr<void> memory) {
  completion_room_ += queues.send_depth + queues.receive_depth;
  if (pair)
    pair->owner = nullptr;
  retired_.push_back({std::move(memory), std::move(pair)});
}

// -- timers
// -------------------------------------------------------------------------------------------

engine::timer_id engine::after(clock::duration delay, std::function<void()> action) {
  auto id = ++last_timer_;
  timers_.emplace(clock::now() + delay, std::pair{id, std::move(action)});
  return id;
}

void engine::cancel(timer_id timer) {
  auto found = std::find_if(timers_.begin(), timers_.end(),
                            [timer](const auto& entry) { return entry.second.first == timer; });
  if (found != timers_.end())
    timers_.erase(found);
}

bool engine::run_timers() {
  if (timers_.empty())
    return false;
  auto now = clock::now();
  auto ran = false;
  // Taken out one by one: an action may add timers, or cancel those that are due too.
  while (!timers_.empty() && timers_.begin()->first <= now) {
    auto action = std::move(timers_.begin()->second.second);
    timers_.erase(timers_.begin());
    action();
    ran = true;
  }
  return ran;
}

void engine::set_alarm() {
  auto next = timers_.empty() ? clock::time_point::max() : timers_.begin()->first;
  if (next == alarm_)
    return;
  alarm_ = next;
  itimerspec when{}; // all zero disarms
  if (next != clock::time_point::max()) {
    auto at = std::chrono::duration_cast<std::chrono::nanoseconds>(next.time_since_epoch()).count();
    when.it_value = {at / 1'000'000'000, at % 1'000'000'000};
  }
  // steady_clock is CLOCK_MONOTONIC in libstdc++, so its time points are absolute times here.
  ::timerfd_settime(alarm_fd_, TFD_TIMER_ABSTIME, &when, nullptr);
}

// -- turns
// --------------------------------------------------------------------------------------------

bool engine::turn() {
  auto busy = poll_completions();
  busy = handle_events() || busy;
  busy = run_timers() || busy;
  retired_.clear();
  return busy;
}

bool engine::poll_completions() {
  auto count = completions_->poll(batch_);
  for (size_t i = 0; i < count; ++i)
    if (auto handler = static_cast<connection_handler*>(batch_[i].pair->owner))
      handler->on_completion(batch_[i]);
  return count > 0;
}

bool engine::handle_events() {
  // A loop that is never idle never sleeps on the event channel: look there now and then all the
  // same.
  if (!std::exchange(events_waiting_, false) && ++turns_ % turns_between_looks != 0)
    return false;
  auto any = false;
  while (auto event = device_->next_event()) {
    any = true;
    if (event->what == connection_event::kind::requested) {
      if (auto found = listeners_.find(event->source); found != listeners_.end())
        found->second(std::move(event->request));
      continue;
    }
    if (event->what == connection_event::kind::disconnected)
      while (poll_completions()) // what arrived before the end is delivered before the end
        ;
    auto handler = static_cast<connection_handler*>(event->pair->owner);
    if (!handler)
      continue;
    if (event->what == connection_event::kind::established)
      handler->on_established(event->private_data);
    else
      handler->on_closed(event->reason, event->private_data);
  }
  return any;
}

void engine::prepare_to_sleep() {
  completions_->arm();
  set_alarm();
  sleeping_.store(true, std::memory_order_seq_cst);
}

std::array<int, 4> engine::fds() const noexcept {
  return {completions_->fd(), device_->event_fd(), wake_fd_, alarm_fd_};
}

void engine::wake_up(int fd) {
  if (fd == completions_->fd())
    completions_->acknowledge();
  else if (fd == device_->event_fd())
    events_waiting_ = true;
  else if (fd == wake_fd_)
    consume_counter(wake_fd_);
  else if (fd == alarm_fd_) {
    consume_counter(alarm_fd_);
    alarm_ = clock::time_point::max(); // it has fired: whatever comes next must be set anew
  }
}

void engine::notify() noexcept {
  if (!sleeping_.exchange(false, std::memory_order_seq_cst))
    return;
  uint64_t one = 1;
  [[maybe_unused]] auto n = ::write(wake_fd_, &one, sizeof one); // EAGAIN: it is awake already
}

void engine::turn_or_sleep(std::chrono::milliseconds limit) {
  if (turn())
    return;
  prepare_to_sleep();
  if (!turn()) {
    std::array<pollfd, 4> watched{};
    auto descriptors = fds();
    for (size_t i = 0; i < watched.size(); ++i)
      watched[i] = {descriptors[i], POLLIN, 0};
    if (::poll(watched.data(), watched.size(), static_cast<int>(limit.count())) > 0)
      for (auto& entry : watched)
        if (entry.revents != 0)
          wake_up(entry.fd);
  }
  awake();
}

} // namespace troupe::transport
