#include "controller/worker_port.hpp"

#include "troupe/actors/completion_slot.hpp"
#include "troupe/actors/state_page.hpp"
#include "troupe/actors/task_lease.hpp"
#include "troupe/actors/task_slot.hpp"
#include "wire.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace troupe::cluster {

using transport::access;
using transport::engine;
using transport::link_ptr;
using transport::local_slice;
using transport::memory_region;

namespace {

exposed_region exposed(const memory_region& region) {
  auto remote = region.remote();
  return {remote.address, remote.length, remote.key};
}

} // namespace

worker_port::worker_port(transport::middleman& network, const exposed_region& inbox,
                         const exposed_region& state, const exposed_region& lease, uint32_t slots)
    : network_(network), inbox_(inbox), state_(state), lease_(lease), slots_(slots) {}

result<std::shared_ptr<worker_port>> worker_port::create(transport::middleman& network,
                                                         const exposed_region& inbox,
                                                         const exposed_region& state,
                                                         const exposed_region& lease,
                                                         uint32_t slots, events handlers) {
  if (inbox.length < uint64_t{slots} * task_slot_bytes || state.length < state_page_bytes ||
      lease.length < lease_bytes)
    return fail(errc::invalid_argument, "the memory that the worker exposes is too small for " +
                                            std::to_string(slots) + " slots");
  std::shared_ptr<worker_port> port{new worker_port{network, inbox, state, lease, slots}};
  auto& memory = network.memory();
  auto completions = memory.allocate(size_t{slots} * completion_slot_bytes, access::remote_write);
  auto outgoing = memory.allocate(size_t{slots} * task_slot_bytes, access::local);
  auto page = memory.allocate(state_page_bytes, access::read_sink);
  auto seen = memory.allocate(lease_bytes, access::local);
  for (auto* made : {&completions, &outgoing, &page, &seen})
    if (!*made)
      return fail(made->error());
  port->completions_ = std::move(*completions);
  port->outgoing_ = std::move(*outgoing);
  port->page_ = std::move(*page);
  port->seen_ = std::move(*seen);
  port->handlers_ = std::move(handlers);
  // The link's handlers keep the port alive for as long as the link may call them.
  transport::memory_link::events link_events;
  link_events.opened = [port] {
    if (!port->closed_)
      port->handlers_.opened();
  };
  link_events.notice = [port](uint32_t slot) { port->on_notice(slot); };
  link_events.closed = [port](const error& reason) { port->fail_link(reason); };
  port->token_ = memory.expect(std::move(link_events),
                               [port](link_ptr link) { port->on_link(std::move(link)); });
  return port;
}

exposed_region worker_port::completions() const {
  return exposed(*completions_);
}

std::string worker_port::path() const {
  std::lock_guard lock{guard_};
  return path_;
}

void worker_port::on_link(link_ptr link) {
  {
    std::lock_guard lock{guard_};
    path_ = link->path();
  }
  link_ = std::move(link);
  if (closed_)
    network_.loop().after({}, [gone = std::move(link_)] {});
}

void worker_port::on_notice(uint32_t slot) {
  if (closed_)
    return;
  if (slot >= slots_)
    return fail_link({errc::protocol_violation, "the worker reports the end of slot " +
                                                    std::to_string(slot) + " of " +
                                                    std::to_string(slots_)});
  auto from =
      completions_->bytes().subspan(size_t{slot} * completion_slot_bytes, completion_slot_bytes);
  handlers_.finished(slot, {from.begin(), from.end()});
}

void worker_port::check(const status& done) {
  // What was flushed was not at fault: the link's own end tells why.
  if (!done && done.error().code() != errc::flushed)
    fail_link(done.error());
}

void worker_port::fail_link(const error& reason) {
  if (std::exchange(closed_, true))
    return;
  // Not destroyed here: its own code may be what calls.
  network_.loop().after({}, [gone = std::move(link_)] {});
  // A soft link that is closed was closed by the peer or, when it died, by its kernel. An adapter
  // says the same of a peer that only does not answer.
  auto soft = path() == "shared memory" || path() == "tcp";
  handlers_.closed(reason, soft && reason.code() == errc::disconnected);
}

void worker_port::close() {
  network_.memory().forget(token_);
  network_.run_later([self = shared_from_this()] {
    if (std::exchange(self->closed_, true))
      return;
    self->network_.loop().after({}, [gone = std::move(self->link_)] {});
  });
}

void worker_port::assign(uint32_t slot, std::vector<std::byte> record) {
  network_.run_later([self = shared_from_this(), slot, bytes = std::move(record)] {
    if (self->closed_ || !self->link_)
      return;
    auto offset = size_t{slot} * task_slot_bytes;
    std::memcpy(self->outgoing_->data() + offset, bytes.data(),
                std::min(bytes.size(), task_slot_bytes));
    self->link_->write_notify({self->outgoing_.get(), offset, task_slot_bytes},
                              {self->inbox_.address + offset, self->inbox_.key}, slot,
                              [self](const status& done) { self->check(done); });
  });
}

result<exposed_region> worker_port::expose(uint32_t slot, std::vector<std::byte> block) {
  exposed_block entry{std::move(block), nullptr};
  auto region = network_.memory().register_memory(entry.bytes, access::remote_read);
  if (!region)
    return fail(region.error());
  entry.region = std::move(*region);
  auto where = exposed(*entry.region);
  std::lock_guard lock{guard_};
  // The region goes before the bytes that it covers.
  if (auto old = blocks_.find(slot); old != blocks_.end()) {
    old->second.region.reset();
    blocks_.erase(old);
  }
  blocks_.emplace(slot, std::move(entry));
  return where;
}

void worker_port::release(uint32_t slot) {
  std::lock_guard lock{guard_};
  if (auto found = blocks_.find(slot); found != blocks_.end()) {
    found->second.region.reset();
    blocks_.erase(found);
  }
}

void worker_port::read_state(bytes_handler done) {
  network_.run_later([self = shared_from_this(), tell = std::move(done)] {
    if (self->closed_ || !self->link_)
      return tell(fail(errc::disconnected, "the worker is not connected"));
    if (std::exchange(self->reading_state_, true))
      return tell(fail(errc::no_resources, "the read before this one has not been answered"));
    self->link_->read({self->page_.get(), 0, state_page_bytes},
                      {self->state_.address, self->state_.key}, [self, tell](const status& how) {
                        self->reading_state_ = false;
                        if (!how)
                          return tell(fail(how.error()));
                        auto page = self->page_->bytes();
                        tell(std::vector<std::byte>{page.begin(), page.begin() + state_page_bytes});
                      });
  });
}

void worker_port::renew_lease(uint64_t epoch) {
  network_.run_later([self = shared_from_this(), epoch] {
    // The next epoch will do when the one before this is still on its way.
    if (self->closed_ || !self->link_ || std::exchange(self->renewing_, true))
      return;
    wire::writer{self->seen_->bytes()}.number(epoch);
    self->link_->write_notify({self->seen_.get(), 0, lease_bytes},
                              {self->lease_.address, self->lease_.key}, renewal_notice,
                              [self](const status& done) {
                                self->renewing_ = false;
                                self->check(done);
                              });
  });
}

void worker_port::read(const exposed_region& from, uint64_t offset, uint64_t length,
                       bytes_handler done) {
  network_.run_later([self = shared_from_this(), from, offset, length, tell = std::move(done)] {
    if (self->closed_ || !self->link_)
      return tell(fail(errc::disconnected, "the worker is not connected"));
    auto made = self->network_.memory().allocate(std::clamp<uint64_t>(length, 1, most_read),
                                                 access::read_sink);
    if (!made)
      return tell(fail(made.error()));
    std::shared_ptr<memory_region> into{std::move(*made)};
    self->link_->read({into.get(), 0, std::min(length, most_read)},
                      {from.address + offset, from.key}, [into, length, tell](const status& how) {
                        if (!how)
                          return tell(fail(how.error()));
                        auto bytes = into->bytes().first(std::min(length, most_read));
                        tell(std::vector<std::byte>{bytes.begin(), bytes.end()});
                      });
  });
}

} // namespace troupe::cluster
