#include "soft/shared_link.hpp"

#include "soft/local_socket.hpp"
#include "troupe/transport/log.hpp"

#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/uio.h>

namespace troupe::transport::soft {

namespace {

// What travels on the life line: a request for an arena, or an arena (with its file).
struct life_message {
  uint32_t here = 0; ///< 0: asks for `arena`; 1: here it is
  uint32_t arena = 0;
  uint64_t size = 0;
  uint32_t key = 0;
  uint32_t unused = 0;
};

} // namespace

shared_link::shared_link(std::shared_ptr<context> device, parts made,
                         std::function<void()> on_peer_gone)
    : device_(std::move(device)), parts_(std::move(made)), on_peer_gone_(std::move(on_peer_gone)) {
  if (parts_.peer > 0)
    process_ = descriptor{static_cast<int>(syscall(SYS_pidfd_open, parts_.peer, 0U))};
  device_->regions().add_peer(&parts_.memory->there().key_in_use, parts_.memory);
  auto watched = device_->watch(parts_.life_line.get(), EPOLLIN, *this);
  if (!watched)
    log_for("soft")->error("the death of a peer will go unnoticed: {}", watched.error().text());
}

shared_link::~shared_link() {
  device_->forget(parts_.life_line.get());
  device_->regions().remove_peer(&parts_.memory->there().key_in_use);
}

bool shared_link::allowed(remote_address where, uint64_t length, access asked) const {
  auto entry = find_key(keys(), where.key);
  return entry && admits(*entry, where.address, length, asked);
}

template <class ArenaUse, class ProcessUse>
reach shared_link::with(remote_address where, uint64_t length, access asked, ArenaUse arena_use,
                        ProcessUse process_use) {
  auto entry = find_key(keys(), where.key);
  if (!entry || !admits(*entry, where.address, length, asked))
    return reach::refused;
  auto start = entry->arena != 0 ? arena_start(*entry) : nullptr;
  auto& in_use = parts_.memory->here().key_in_use;
  // Either the owner's revocation sees this, or we see its revocation: both are in the one order
  // of sequentially consistent operations.
  in_use.store(where.key, std::memory_order_seq_cst);
  auto outcome = reach::refused;
  if (key_is_current(keys(), where.key))
    outcome = start ? arena_use(start + (where.address - entry->address)) : process_use();
  in_use.store(0, std::memory_order_release);
  return outcome;
}

reach shared_link::write(remote_address where, byte_view source) {
  return with(
      where, source.size(), access::remote_write,
      [&](std::byte* place) {
        std::memcpy(place, source.data(), source.size());
        return reach::done;
      },
      [&] {
        byte_span local{const_cast<std::byte*>(source.data()), source.size()};
        return copy_process(where.address, local, true);
      });
}

reach shared_link::read(remote_address where, byte_span target) {
  return with(
      where, target.size(), access::remote_read,
      [&](std::byte* place) {
        std::memcpy(target.data(), place, target.size());
        return reach::done;
      },
      [&] { return copy_process(where.address, target, false); });
}

reach shared_link::atomic(remote_address where, bool swaps, uint64_t operand, uint64_t swap,
                          uint64_t& old) {
  return with(
      where, sizeof old, access::remote_atomic,
      [&](std::byte* place) {
        if (reinterpret_cast<uintptr_t>(place) % sizeof old != 0)
          return reach::refused;
        std::atomic_ref word{*reinterpret_cast<uint64_t*>(place)};
        old = operand;
        if (swaps)
          word.compare_exchange_strong(old, swap);
        else
          old = word.fetch_add(operand);
        return reach::done;
      },
      // Only the owner can do it on memory that is not shared.
      [] { return reach::indirect; });
}

// -- the peer's process ---------------------------------------------------------------------------

bool shared_link::process_reachable() {
  if (process_forbidden_ || !process_)
    return false;
  // Readable once the process has ended: then its number may soon belong to another.
  pollfd ended{process_.get(), POLLIN, 0};
  return ::poll(&ended, 1, 0) == 0;
}

reach shared_link::copy_process(uint64_t address, byte_span local, bool to_peer) {
  if (!process_reachable())
    return reach::indirect;
  while (!local.empty()) {
    iovec here{local.data(), local.size()};
    iovec there{reinterpret_cast<void*>(address), local.size()};
    auto copied = to_peer ? process_vm_writev(parts_.peer, &here, 1, &there, 1, 0)
                          : process_vm_readv(parts_.peer, &here, 1, &there, 1, 0);
    if (copied > 0) {
      local = local.subspan(static_cast<size_t>(copied));
      address += static_cast<uint64_t>(copied);
      continue;
    }
    if (copied < 0 && errno == EFAULT)
      return reach::refused;
    process_forbidden_ = true;
    log_for("soft")->info("memory that was not made by allocate() is reached through process {}, "
                          "not directly: {}",
                          parts_.peer, system_error("process_vm_readv", errno).text());
    return reach::indirect;
  }
  return reach::done;
}

// -- arenas ---------------------------------------------------------------------------------------

std::byte* shared_link::arena_start(const key_entry& entry) {
  auto revocations = keys().revocations.load(std::memory_order_relaxed);
  if (revocations != revocations_seen_) {
    revocations_seen_ = revocations;
    drop_dead_arenas();
  }
  auto found = arenas_.find(entry.arena);
  if (found == arenas_.end()) {
    if (!asked_for_.contains(entry.arena)) {
      life_message question{0, entry.arena, 0, 0, 0};
      if (send_message(parts_.life_line.get(), std::as_bytes(std::span{&question, 1}), {}))
        asked_for_.insert(entry.arena);
    }
    read_life_line();
    found = arenas_.find(entry.arena);
    if (found == arenas_.end())
      return nullptr;
  }
  auto size = found->second.memory.size();
  if (entry.arena_offset > size || entry.length > size - entry.arena_offset)
    return nullptr;
  return found->second.memory.data() + entry.arena_offset;
}

void shared_link::drop_dead_arenas() {
  std::erase_if(arenas_,
                [this](const auto& each) { return !key_is_current(keys(), each.second.key); });
}

void shared_link::take_arena(uint32_t id, uint64_t size, uint32_t key, descriptor file) {
  // Only what was asked for, so that a peer cannot fill our address space.
  if (asked_for_.erase(id) == 0 || size == 0 || !file)
    return;
  if (!check_shared_file(file.get(), size) || !key_is_current(keys(), key))
    return;
  auto memory = map_shared_file(file.get(), size, true);
  if (memory)
    arenas_.insert_or_assign(id, peer_arena{std::move(*memory), key});
  else
    log_for("soft")->warn(memory.error().text());
}

void shared_link::give_arena(uint32_t id) {
  auto offer = device_->regions().offer(id);
  life_message answer{1, id, 0, 0, 0};
  if (!offer) {
    send_message(parts_.life_line.get(), std::as_bytes(std::span{&answer, 1}), {});
    return;
  }
  answer.size = offer->size;
  answer.key = offer->key;
  int file = offer->file.get();
  send_message(parts_.life_line.get(), std::as_bytes(std::span{&answer, 1}), {&file, 1});
}

bool shared_link::read_life_line() {
  for (;;) {
    life_message content;
    local_message message;
    auto outcome = receive_message(parts_.life_line.get(),
                                   std::as_writable_bytes(std::span{&content, 1}), message);
    if (outcome != local_outcome::message)
      return outcome != local_outcome::ended;
    if (message.length != sizeof content)
      return false;
    if (content.here == 0)
      give_arena(content.arena);
    else
      take_arena(content.arena, content.size, content.key, std::move(message.descriptors[0]));
  }
}

void shared_link::on_ready(int, uint32_t) {
  if (read_life_line())
    return;
  device_->forget(parts_.life_line.get());
  on_peer_gone_();
}

} // namespace troupe::transport::soft
