#include "completions.hpp"

#include "connection.hpp"
#include "troupe/transport/log.hpp"

#include <algorithm>
#include <array>
#include <system_error>

namespace troupe::transport::verbs {

namespace {

// Entries are cheap. Soft-iWARP cannot grow a queue later.
constexpr uint32_t least_entries = 4096;
constexpr uint32_t least_entries_iwarp = 65536;
constexpr size_t poll_batch = 32;
constexpr unsigned acknowledge_batch = 64; // acknowledging takes a mutex

} // namespace

result<std::unique_ptr<completions>> completions::create(const std::shared_ptr<adapter>& on,
                                                         uint32_t depth) {
  const auto& name = on->name();
  auto most = on->limits().max_completions;
  if (depth == 0 || depth > most)
    return fail(errc::invalid_argument, "a completion queue on " + name + " has 1 to " +
                                            std::to_string(most) + " entries, not " +
                                            std::to_string(depth));
  auto made = std::make_shared<completion_entries>();
  made->on = on;
  made->channel.reset(ibv_create_comp_channel(on->context()));
  if (!made->channel)
    return fail(system_error("ibv_create_comp_channel on " + name, errno));
  if (!set_non_blocking(made->channel->fd))
    return fail(system_error("fcntl on a completion channel of " + name, errno));
  auto shares = on->raw_completions() / most;
  auto least = on->is_iwarp() ? least_entries_iwarp : least_entries;
  auto entries = std::min(std::max(depth * shares, least), on->raw_completions());
  made->queue.reset(
      ibv_create_cq(on->context(), static_cast<int>(entries), nullptr, made->channel.get(), 0));
  if (!made->queue)
    return fail(
        system_error("ibv_create_cq of " + std::to_string(entries) + " entries on " + name, errno));
  return std::unique_ptr<completions>{new completions{std::move(made)}};
}

completions::~completions() {
  if (unacknowledged_ > 0)
    ibv_ack_cq_events(raw(), unacknowledged_);
}

size_t completions::poll(std::span<completion> out) {
  completion_sink sink{out, backlog_};
  if (sink.space() > 0)
    take(sink);
  return sink.count();
}

void completions::take(completion_sink& sink) {
  std::array<ibv_wc, poll_batch> batch;
  for (;;) {
    // With an empty span everything goes into the backlog.
    auto want = sink.space() > 0 ? std::min(sink.space(), batch.size()) : batch.size();
    int got = ibv_poll_cq(raw(), static_cast<int>(want), batch.data());
    if (got < 0) {
      if (!std::exchange(broken_, true))
        log_for("verbs")->error("ibv_poll_cq on {} failed: {}", adapter_->name(), got);
      return;
    }
    for (int index = 0; index < got; ++index) {
      const auto& entry = batch[static_cast<size_t>(index)];
      auto tag = work_tag::unpack(entry.wr_id);
      if (auto found = members_.find(tag.owner); found != members_.end())
        found->second.user->finish(tag, entry, sink);
    }
    if (static_cast<size_t>(got) < want) {
      if (settling_ > 0)
        settle(sink);
      return;
    }
    if (sink.space() == 0 && sink.count() > 0)
      return;
  }
}

void completions::settle(completion_sink& sink) {
  auto now = std::chrono::steady_clock::now();
  for (auto& [owner, entry] : members_)
    if (entry.settling && entry.user->settle(now, sink)) {
      entry.settling = false;
      --settling_;
    }
}

void completions::arm() {
  // An announcement of what was polled in the meantime would only wake the loop for nothing.
  if (armed_)
    acknowledge();
  armed_ = true;
  if (int rc = ibv_req_notify_cq(raw(), 0); rc != 0)
    log_for("verbs")->error("ibv_req_notify_cq on {}: {}", adapter_->name(),
                            std::generic_category().message(rc));
}

void completions::acknowledge() {
  ibv_cq* source = nullptr;
  void* context = nullptr;
  while (ibv_get_cq_event(entries_->channel.get(), &source, &context) == 0)
    ++unacknowledged_;
  armed_ = false;
  if (unacknowledged_ >= acknowledge_batch)
    ibv_ack_cq_events(raw(), std::exchange(unacknowledged_, 0));
}

status completions::make_room(uint32_t entries) {
  auto capacity = static_cast<uint64_t>(std::max(raw()->cqe, 0));
  auto needed = reserved_ + entries;
  if (needed <= capacity)
    return {};
  int rc = ENOSPC;
  if (needed <= adapter_->raw_completions()) {
    auto grown = std::min<uint64_t>(std::max(needed, 2 * capacity), adapter_->raw_completions());
    rc = ibv_resize_cq(raw(), static_cast<int>(grown));
    if (rc == 0)
      return {};
  }
  return fail(errc::limit_too_low, "the completion queue of " + std::to_string(capacity) +
                                       " entries on " + adapter_->name() + " has no room for " +
                                       std::to_string(entries) + " more (" +
                                       std::generic_category().message(rc < 0 ? -rc : rc) +
                                       "); use smaller queue pairs or one more completion queue");
}

result<uint32_t> completions::enter(connection& user, uint32_t entries) {
  if (auto room = make_room(entries); !room)
    return fail(room.error());
  // Numbers of the living are skipped, should the counter ever come round.
  while (next_owner_ == 0 || members_.contains(next_owner_))
    ++next_owner_;
  members_[next_owner_] = {&user, entries};
  reserved_ += entries;
  return next_owner_++;
}

void completions::leave(uint32_t owner) noexcept {
  auto found = members_.find(owner);
  if (found == members_.end())
    return;
  reserved_ -= found->second.entries;
  if (found->second.settling)
    --settling_;
  std::erase_if(backlog_, [&](const completion& c) { return c.pair == found->second.user; });
  members_.erase(found);
  // Its entries must not take up room that others were promised.
  completion_sink sink{{}, backlog_};
  take(sink);
}

void completions::settle_later(uint32_t owner) {
  auto found = members_.find(owner);
  if (found == members_.end() || found->second.settling)
    return;
  found->second.settling = true;
  ++settling_;
}

} // namespace troupe::transport::verbs
