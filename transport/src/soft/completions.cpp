#include "soft/completions.hpp"

#include "soft/pair.hpp"
#include "troupe/transport/log.hpp"

#include <algorithm>
#include <cerrno>
#include <sys/epoll.h>

namespace troupe::transport::soft {

namespace {

constexpr int idle_polls = 64;
constexpr int most_reports = 32;

} // namespace

result<std::unique_ptr<completions>> completions::make() {
  descriptor epoll{epoll_create1(EPOLL_CLOEXEC)};
  if (!epoll)
    return fail(system_error("epoll_create1", errno));
  auto bell = doorbell::make();
  if (!bell)
    return fail(bell.error());
  epoll_event interest{EPOLLIN, {.ptr = nullptr}};
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, (*bell)->event(), &interest) != 0)
    return fail(system_error("epoll_ctl", errno));
  return std::make_unique<completions>(std::move(epoll), std::move(*bell));
}

completions::completions(descriptor epoll, std::unique_ptr<doorbell> bell)
    : epoll_(std::move(epoll)), bell_(std::move(bell)) {}

size_t completions::poll(std::span<completion> out) {
  if (ready_.size() < out.size())
    turn(out.size());
  auto count = std::min(ready_.size(), out.size());
  for (size_t i = 0; i < count; ++i) {
    out[i] = ready_.front();
    ready_.pop_front();
    static_cast<pair*>(out[i].pair)->taken(out[i].op);
  }
  if ((!ready_.empty() || !run_.empty()) && bell_->armed())
    bell_->announce_here();
  return count;
}

void completions::turn(size_t wanted) {
  polling_ = true;
  bits_.clear();
  bell_->collect(bits_);
  for (auto bit : bits_)
    if (bit < by_bit_.size() && by_bit_[bit])
      run_later(*by_bit_[bit]);
  check_sockets();
  running_.swap(run_);
  size_t next = 0;
  for (; next < running_.size() && ready_.size() < wanted; ++next) {
    running_[next]->set_queued(false);
    running_[next]->progress();
  }
  // Those that were not reached come first the next time.
  run_.insert(run_.begin(), running_.begin() + static_cast<ptrdiff_t>(next), running_.end());
  running_.clear();
  polling_ = false;
}

void completions::check_sockets() {
  if (sockets_ == 0)
    return;
  if (polls_until_check_ > 0 && outputs_wanted_ == 0) {
    --polls_until_check_;
    return;
  }
  epoll_event reports[most_reports];
  auto count = epoll_wait(epoll_.get(), reports, most_reports, 0);
  polls_until_check_ = idle_polls;
  for (int i = 0; i < count; ++i) {
    auto who = static_cast<pair*>(reports[i].data.ptr);
    if (!who)
      continue;
    polls_until_check_ = 0;
    run_later(*who);
  }
}

void completions::arm() {
  bell_->arm();
  polls_until_check_ = 0;
  if (!ready_.empty() || !run_.empty())
    bell_->announce_here();
}

void completions::acknowledge() {
  bell_->acknowledge();
  polls_until_check_ = 0;
}

void completions::push(const completion& done) {
  ready_.push_back(done);
  // Inside poll() the caller is about to see it.
  if (!polling_ && bell_->armed())
    bell_->announce_here();
}

void completions::run_later(pair& who) {
  if (who.queued())
    return;
  who.set_queued(true);
  run_.push_back(&who);
  if (!polling_ && bell_->armed())
    bell_->announce_here();
}

std::optional<uint32_t> completions::add_shared(pair& who) {
  auto bit = bell_->take_bit();
  if (!bit)
    return std::nullopt;
  if (by_bit_.size() <= *bit)
    by_bit_.resize(*bit + 1);
  by_bit_[*bit] = &who;
  return bit;
}

status completions::add_socket(pair& who, int socket) {
  epoll_event interest{EPOLLIN, {.ptr = &who}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket, &interest) != 0)
    return fail(system_error("epoll_ctl", errno));
  ++sockets_;
  polls_until_check_ = 0;
  return {};
}

void completions::watch_output(pair& who, int socket, bool wanted) {
  epoll_event interest{EPOLLIN, {.ptr = &who}};
  if (wanted)
    interest.events |= EPOLLOUT;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, socket, &interest) != 0)
    log_for("soft")->error(system_error("epoll_ctl", errno).text());
  outputs_wanted_ = wanted ? outputs_wanted_ + 1 : outputs_wanted_ - 1;
}

void completions::remove_socket(int socket, bool wanted_output) {
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket, nullptr);
  --sockets_;
  if (wanted_output)
    --outputs_wanted_;
}

void completions::remove(pair& who, std::optional<uint32_t> bit) {
  if (bit) {
    by_bit_[*bit] = nullptr;
    bell_->give_back(*bit);
  }
  std::erase(run_, &who);
  std::erase_if(ready_, [&who](const completion& done) { return done.pair == &who; });
}

} // namespace troupe::transport::soft
