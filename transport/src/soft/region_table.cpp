#include "soft/region_table.hpp"

#include "troupe/transport/log.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <thread>

namespace troupe::transport::soft {

/// A registration; `memory` is empty when the caller owns the bytes.
class region final : public memory_region {
public:
  region(std::shared_ptr<region_table> table, byte_span bytes, access held, uint32_t key,
         mapping memory)
      : table_(std::move(table)), bytes_(bytes), rights_(held), key_(key),
        memory_(std::move(memory)) {}

  ~region() override { table_->forget(key_, memory_ ? memory_.data() : nullptr); }

  std::byte* data() const noexcept override { return bytes_.data(); }
  size_t size() const noexcept override { return bytes_.size(); }
  access rights() const noexcept override { return rights_; }
  const void* home() const noexcept override { return table_.get(); }
  remote_region remote() const noexcept override {
    return {reinterpret_cast<uint64_t>(bytes_.data()), bytes_.size(), key_};
  }

private:
  std::shared_ptr<region_table> table_;
  byte_span bytes_;
  access rights_;
  uint32_t key_;
  mapping memory_;
};

result<std::shared_ptr<region_table>> region_table::make() {
  auto size = whole_pages(sizeof(key_page));
  auto file = make_shared_file("troupe-keys", size);
  if (!file)
    return fail(file.error());
  auto page = map_shared_file(file->get(), size, true);
  if (!page)
    return fail(page.error());
  if (auto sealed = forbid_writers(file->get()); !sealed)
    return fail(sealed.error());
  return std::make_shared<region_table>(std::move(*file), std::move(*page));
}

region_table::region_table(descriptor file, mapping page_memory)
    : file_(std::move(file)), page_(std::move(page_memory)), keys_(page()) {}

result<uint32_t> region_table::add_key(byte_span memory, access rights) {
  key_entry entry{reinterpret_cast<uint64_t>(memory.data()), memory.size(), rights, 0, 0};
  // Ordinary memory that lies in an arena is as fast to reach as the arena.
  if (auto after = arenas_.upper_bound(memory.data()); after != arenas_.begin()) {
    const auto& [start, found] = *std::prev(after);
    auto offset = static_cast<size_t>(memory.data() - start);
    if (offset < found.size && memory.size() <= found.size - offset) {
      entry.arena = found.id;
      entry.arena_offset = offset;
    }
  }
  auto key = keys_.add(entry);
  if (!key)
    return fail(errc::limit_too_low, "registering " + std::to_string(memory.size()) +
                                         " bytes: all " + std::to_string(key_slots) +
                                         " keys of the soft device are taken");
  return *key;
}

result<std::unique_ptr<memory_region>> region_table::allocate(size_t size, access rights) {
  if (size == 0 || size > size_t{1} << 46)
    return fail(errc::invalid_argument, "cannot allocate " + std::to_string(size) + " bytes");
  size = whole_pages(size);
  auto file = make_shared_file("troupe-arena", size);
  if (!file)
    return fail(file.error());
  auto memory = map_shared_file(file->get(), size, true);
  if (!memory)
    return fail(memory.error());
  byte_span bytes{memory->data(), size};
  std::lock_guard lock{guard_};
  auto [place, fresh] =
      arenas_.insert_or_assign(bytes.data(), arena{++last_arena_, 0, size, std::move(*file)});
  auto key = add_key(bytes, rights);
  if (!key) {
    arenas_.erase(place);
    return fail(key.error());
  }
  place->second.key = *key;
  return std::make_unique<region>(shared_from_this(), bytes, rights, *key, std::move(*memory));
}

result<std::unique_ptr<memory_region>> region_table::adopt(byte_span memory, access rights) {
  if (memory.empty())
    return fail(errc::invalid_argument, "cannot register 0 bytes");
  std::lock_guard lock{guard_};
  auto key = add_key(memory, rights);
  if (!key)
    return fail(key.error());
  return std::make_unique<region>(shared_from_this(), memory, rights, *key, mapping{});
}

void region_table::forget(uint32_t key, std::byte* arena_start) {
  std::vector<peer> peers;
  {
    std::unique_lock alone{serving_};
    std::lock_guard lock{guard_};
    keys_.revoke(key);
    peers = peers_;
  }
  auto deadline = std::chrono::steady_clock::now() + revocation_patience;
  for (const auto& each : peers) {
    while (each.word->load(std::memory_order_seq_cst) == key) {
      if (std::chrono::steady_clock::now() > deadline) {
        log_for("soft")->warn("a peer still uses memory after its key was revoked; it seems to be "
                              "stopped in the middle of a copy");
        break;
      }
      std::this_thread::yield();
    }
  }
  if (!arena_start)
    return;
  std::lock_guard lock{guard_};
  auto found = arenas_.find(arena_start);
  if (found == arenas_.end())
    return;
  // Peers may keep the file mapped for a while; its memory is given back now.
  if (fallocate(found->second.file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                static_cast<off_t>(found->second.size)) != 0)
    log_for("soft")->warn(system_error("freeing an arena", errno).text());
  arenas_.erase(found);
}

std::optional<arena_offer> region_table::offer(uint32_t id) const {
  std::lock_guard lock{guard_};
  for (const auto& [start, each] : arenas_) {
    if (each.id != id)
      continue;
    descriptor copy{fcntl(each.file.get(), F_DUPFD_CLOEXEC, 0)};
    if (!copy)
      return std::nullopt;
    return arena_offer{std::move(copy), each.size, each.key};
  }
  return std::nullopt;
}

void region_table::add_peer(const busy_key* word, std::shared_ptr<void> keeper) {
  std::lock_guard lock{guard_};
  peers_.push_back({word, std::move(keeper)});
}

void region_table::remove_peer(const busy_key* word) {
  std::lock_guard lock{guard_};
  std::erase_if(peers_, [word](const peer& each) { return each.word == word; });
}

} // namespace troupe::transport::soft
