#include "worker/worker_memory.hpp"

#include "troupe/actors/completion_slot.hpp"
#include "troupe/actors/task_slot.hpp"
#include "wire.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace troupe::cluster {

using transport::access;
using transport::link_ptr;
using transport::memory_region;

namespace {

constexpr uint64_t longest_lease_ms = 24ULL * 3600 * 1000; // whatever the controller says

exposed_region exposed(const memory_region& region) {
  auto remote = region.remote();
  return {remote.address, remote.length, remote.key};
}

} // namespace

worker_memory::worker_memory(transport::middleman& network, incarnation_id node, uint32_t slots)
    : network_(network), node_(node), slots_(slots) {}

result<std::shared_ptr<worker_memory>> worker_memory::create(transport::middleman& network,
                                                             incarnation_id node, uint32_t slots,
                                                             events handlers) {
  std::shared_ptr<worker_memory> made{new worker_memory{network, node, slots}};
  auto& memory = network.memory();
  auto inbox = memory.allocate(size_t{slots} * task_slot_bytes, access::remote_write);
  auto page = memory.allocate(state_page_bytes, access::remote_read);
  auto seen = memory.allocate(lease_bytes, access::remote_write);
  auto outgoing = memory.allocate(size_t{slots} * completion_slot_bytes, access::local);
  for (auto* region : {&inbox, &page, &seen, &outgoing})
    if (!*region)
      return fail(region->error());
  made->inbox_ = std::move(*inbox);
  made->page_ = std::move(*page);
  made->seen_ = std::move(*seen);
  auto writer = state_page_writer::create(made->page_->bytes());
  if (!writer)
    return fail(writer.error());
  made->writer_ = std::move(*writer);
  made->outgoing_ = std::move(*outgoing);
  made->handlers_ = std::move(handlers);
  made->figures_.incarnation = node;
  return made;
}

exposed_region worker_memory::inbox() const {
  return exposed(*inbox_);
}

exposed_region worker_memory::state() const {
  return exposed(*page_);
}

exposed_region worker_memory::lease() const {
  return exposed(*seen_);
}

void worker_memory::on_lease(std::function<void(boot_clock::time_point)> handler) {
  std::lock_guard lock{lease_guard_};
  lease_handler_ = std::move(handler);
}

void worker_memory::tell_lease(boot_clock::time_point end) {
  std::lock_guard lock{lease_guard_};
  if (lease_handler_)
    lease_handler_(end);
}

void worker_memory::connect(const transport::endpoint& controller, const join_accepted& terms,
                            std::chrono::milliseconds timeout) {
  network_.run_later([self = shared_from_this(), controller, terms, timeout] {
    if (self->closed_)
      return;
    self->completions_ = terms.completions;
    self->heartbeat_ = std::chrono::milliseconds{std::max<uint64_t>(terms.heartbeat_ms, 1)};
    if (terms.completions.length < uint64_t{self->slots_} * completion_slot_bytes)
      return self->fail_link(
          {errc::protocol_violation, "the controller's completion memory is too small"});
    transport::memory_link::events link_events;
    link_events.opened = [self] {
      if (!self->closed_)
        self->handlers_.opened();
    };
    link_events.notice = [self](uint32_t slot) { self->on_notice(slot); };
    link_events.closed = [self](const error& reason) { self->fail_link(reason); };
    // The controller begins to count when it sees the link, and assigns nothing before.
    self->lease_.emplace(std::chrono::milliseconds{std::min(terms.lease_ms, longest_lease_ms)},
                         boot_clock::now());
    self->tell_lease(self->lease_->end());
    auto link =
        self->network_.memory().connect(controller, terms.token, timeout, std::move(link_events));
    if (!link)
      return self->fail_link(link.error());
    self->link_ = std::move(*link);
    self->beat();
  });
}

void worker_memory::on_notice(uint32_t slot) {
  if (closed_)
    return;
  if (slot == renewal_notice)
    return on_renewal();
  if (slot >= slots_)
    return fail_link(
        {errc::protocol_violation,
         "the controller fills slot " + std::to_string(slot) + " of " + std::to_string(slots_)});
  auto from = inbox_->bytes().subspan(size_t{slot} * task_slot_bytes, task_slot_bytes);
  handlers_.assigned(slot, {from.begin(), from.end()});
}

void worker_memory::on_renewal() {
  wire::reader in{seen_->bytes()};
  auto epoch = in.number<uint64_t>();
  if (auto end = lease_->seen(epoch))
    tell_lease(*end);
}

void worker_memory::fail_link(const error& reason) {
  // The link stays until `close`: the tasks are to be gone before the controller sees its end.
  if (!std::exchange(closed_, true))
    handlers_.closed(reason);
}

void worker_memory::close() {
  network_.run_later([self = shared_from_this()] {
    self->closed_ = true;
    // Not destroyed here: its own code may be what calls.
    self->network_.loop().after({}, [gone = std::move(self->link_)] {});
  });
}

void worker_memory::report(uint32_t slot, std::vector<std::byte> record) {
  network_.run_later([self = shared_from_this(), slot, bytes = std::move(record)] {
    if (self->closed_ || !self->link_)
      return;
    auto offset = size_t{slot} * completion_slot_bytes;
    std::memcpy(self->outgoing_->data() + offset, bytes.data(),
                std::min(bytes.size(), completion_slot_bytes));
    self->link_->write_notify({self->outgoing_.get(), offset, completion_slot_bytes},
                              {self->completions_.address + offset, self->completions_.key}, slot,
                              [self](const status& done) {
                                if (!done)
                                  self->fail_link(done.error());
                              });
  });
}

void worker_memory::read(const exposed_region& from,
                         std::function<void(result<std::vector<std::byte>>)> done) {
  network_.run_later([self = shared_from_this(), from, tell = std::move(done)] {
    if (self->closed_ || !self->link_)
      return tell(fail(errc::disconnected, "the controller is not connected"));
    if (from.length == 0 || from.length > max_task_body)
      return tell(fail(errc::protocol_violation,
                       "a task of " + std::to_string(from.length) + " bytes is out of range"));
    auto made = self->network_.memory().allocate(from.length, access::read_sink);
    if (!made)
      return tell(fail(made.error()));
    std::shared_ptr<memory_region> into{std::move(*made)};
    self->link_->read({into.get(), 0, from.length}, {from.address, from.key},
                      [into, length = from.length, tell](const status& how) {
                        if (!how)
                          return tell(fail(how.error()));
                        auto bytes = into->bytes().first(length);
                        tell(std::vector<std::byte>{bytes.begin(), bytes.end()});
                      });
  });
}

void worker_memory::set_figures(const state_snapshot& figures) {
  std::lock_guard lock{guard_};
  figures_ = figures;
  figures_.incarnation = node_;
}

result<std::unique_ptr<memory_region>> worker_memory::expose(transport::byte_view bytes) {
  // Only read by the peer; the contract knows one kind of span for memory.
  transport::byte_span memory{const_cast<std::byte*>(bytes.data()), bytes.size()};
  return network_.memory().register_memory(memory, access::remote_read);
}

/// Advances the epoch: the sign that this loop turns, read by the monitor without our doing.
void worker_memory::beat() {
  if (closed_)
    return;
  state_snapshot next;
  {
    std::lock_guard lock{guard_};
    next = figures_;
  }
  next.epoch = ++epoch_;
  lease_->publish(epoch_, boot_clock::now());
  writer_->publish(next);
  network_.loop().after(heartbeat_, [self = shared_from_this()] { self->beat(); });
}

} // namespace troupe::cluster
