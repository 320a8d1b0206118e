#include "work_ring.hpp"

#include <algorithm>

namespace troupe::transport::verbs {

namespace {

/// Results of these land in memory only when the adapter says so, even if a later send has ended.
bool brings_data_back(opcode op) {
  return op == opcode::read || op == opcode::fetch_add || op == opcode::compare_swap;
}

} // namespace

work_ring::work_ring(uint32_t depth, uint32_t slots_per_request, bool all_signaled)
    : depth_(std::max(depth, 1U)), interval_(all_signaled ? 1 : std::max(depth / 4, 1U)),
      records_(size_t{depth_ + interval_ - 1} * slots_per_request) {}

uint32_t work_ring::room() const noexcept {
  auto waited_for = requests_ - tail_run_;
  return depth_ > waited_for ? depth_ - waited_for : 0;
}

work_ring::placement work_ring::push(const posted_work& work) {
  auto slot = (head_ + count_) % slots();
  auto& entry = records_[slot];
  entry = {};
  entry.work = work;
  ++count_;
  if (work.first_half)
    return {slot, false};
  ++requests_;
  ++tail_run_;
  entry.expected = work.signaled || brings_data_back(work.op) || tail_run_ >= interval_;
  if (entry.expected)
    tail_run_ = 0;
  return {slot, entry.expected};
}

bool work_ring::holds(uint32_t slot) const noexcept {
  return slot < slots() && (slot + slots() - head_) % slots() < count_ && !records_[slot].ended;
}

bool work_ring::mark(uint32_t slot, errc status) {
  if (!holds(slot))
    return false;
  records_[slot].ended = true;
  records_[slot].status = status;
  ++ended_;
  return true;
}

work_ring::progress work_ring::advance(ended_work& out) {
  if (count_ == 0 || ended_ == 0)
    return progress::none;
  auto& entry = records_[head_];
  if (!entry.ended && entry.expected)
    return progress::none;
  if (entry.ended)
    --ended_;
  else
    entry.status = failed_ ? errc::flushed : errc::none;
  out = {entry.work.id, entry.work.op, entry.status, head_};
  bool failure = entry.status != errc::none;
  failed_ = failed_ || failure;
  bool visible = failure ? !entry.muted : entry.work.signaled && !entry.work.first_half;
  head_ = (head_ + 1) % slots();
  --count_;
  if (entry.work.first_half) {
    if (failure && count_ > 0)
      records_[head_].muted = true;
  } else {
    --requests_;
    tail_run_ = std::min(tail_run_, requests_);
  }
  return visible ? progress::visible : progress::hidden;
}

} // namespace troupe::transport::verbs
