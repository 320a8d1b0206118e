#include "soft/ring_stream.hpp"

namespace troupe::transport::soft {

namespace {

// A peer that waits for room is told once this much of it has come together.
constexpr size_t release_step = ring_size / 4;

} // namespace

ring_stream::ring_stream(std::shared_ptr<link_memory> memory, remote_doorbell peer)
    : memory_(std::move(memory)), peer_(std::move(peer)),
      out_(memory_->here().outgoing, memory_->outgoing()),
      in_(memory_->there().outgoing, memory_->incoming()) {}

ring_stream::~ring_stream() {
  out_.publish();
  memory_->here().closed.store(1, std::memory_order_release);
  peer_.ring();
}

size_t ring_stream::write(byte_view head, byte_view body) {
  auto taken = out_.write(head);
  return taken < head.size() ? taken : taken + out_.write(body);
}

bool ring_stream::flush() {
  if (out_.publish())
    peer_.ring();
  return true;
}

size_t ring_stream::read(byte_span into) {
  auto count = in_.read(into);
  if (count > 0 || into.empty()) {
    if (in_.unreleased() >= release_step)
      release();
    return count;
  }
  // Whether it closed is asked before the last look, so that nothing published before is missed.
  bool closed = peer_closed();
  count = in_.read(into);
  ended_ = in_.broken() || (closed && count == 0);
  return count;
}

void ring_stream::release() {
  if (in_.release())
    ring_if_waiting();
}

void ring_stream::wait_for_peer() {
  memory_->here().waiting.store(1, std::memory_order_relaxed);
  // Pairs with the fence in ring_if_waiting: either the peer sees the flag, or we see its news.
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void ring_stream::offer_receives(uint32_t total) {
  memory_->here().receives.store(total, std::memory_order_release);
  ring_if_waiting();
}

uint32_t ring_stream::offered_receives() {
  return memory_->there().receives.load(std::memory_order_acquire);
}

void ring_stream::ring_if_waiting() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  auto& waiting = memory_->there().waiting;
  if (waiting.load(std::memory_order_relaxed) != 0 && waiting.exchange(0) != 0)
    peer_.ring();
}

} // namespace troupe::transport::soft
