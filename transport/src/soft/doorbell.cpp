#include "soft/doorbell.hpp"

#include "soft/shared_file.hpp"

#include <bit>
#include <cerrno>
#include <sys/eventfd.h>

namespace troupe::transport::soft {

void announce(doorbell_page& page, int event) noexcept {
  // Pairs with the fence in arm().
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (page.armed.load(std::memory_order_relaxed) == 0 || page.armed.exchange(0) == 0)
    return;
  uint64_t one = 1;
  // Fails only when the counter is full, and then it is readable anyway.
  [[maybe_unused]] auto ignored = ::write(event, &one, sizeof one);
}

result<std::unique_ptr<doorbell>> doorbell::make() {
  auto size = whole_pages(sizeof(doorbell_page));
  auto file = make_shared_file("troupe-doorbell", size);
  if (!file)
    return fail(file.error());
  auto memory = map_shared_file(file->get(), size, true);
  if (!memory)
    return fail(memory.error());
  descriptor event{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  if (!event)
    return fail(system_error("eventfd", errno));
  return std::make_unique<doorbell>(std::move(*file), std::move(*memory), std::move(event));
}

doorbell::doorbell(descriptor file, mapping memory, descriptor event)
    : file_(std::move(file)), memory_(std::move(memory)), event_(std::move(event)) {}

std::optional<uint32_t> doorbell::take_bit() {
  if (!bits_free_.empty()) {
    auto bit = bits_free_.back();
    bits_free_.pop_back();
    return bit;
  }
  if (bits_used_ == doorbell_bits)
    return std::nullopt;
  return bits_used_++;
}

void doorbell::give_back(uint32_t bit) {
  bits_free_.push_back(bit);
}

void doorbell::collect(std::vector<uint32_t>& bits) {
  if (page().summary.load(std::memory_order_relaxed) == 0)
    return;
  for (auto words = page().summary.exchange(0); words != 0; words &= words - 1) {
    auto word = static_cast<uint32_t>(std::countr_zero(words));
    for (auto found = page().ready[word].exchange(0); found != 0; found &= found - 1)
      bits.push_back(word * 64 + static_cast<uint32_t>(std::countr_zero(found)));
  }
  // What a bit stands for is read after it was cleared: see remote_doorbell::ring.
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void doorbell::arm() noexcept {
  page().armed.store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

bool doorbell::armed() const noexcept {
  return page().armed.load(std::memory_order_relaxed) != 0;
}

void doorbell::acknowledge() noexcept {
  uint64_t count = 0;
  // Fails with EAGAIN when nothing was announced.
  [[maybe_unused]] auto ignored = ::read(event_.get(), &count, sizeof count);
}

result<remote_doorbell> remote_doorbell::open(const descriptor& file, descriptor event,
                                              uint32_t bit) {
  if (bit >= doorbell_bits)
    return fail(errc::protocol_violation, "the peer's doorbell has no bit " + std::to_string(bit));
  auto size = whole_pages(sizeof(doorbell_page));
  if (auto checked = check_shared_file(file.get(), size); !checked)
    return fail(checked.error());
  auto memory = map_shared_file(file.get(), size, true);
  if (!memory)
    return fail(memory.error());
  remote_doorbell bell;
  bell.memory_ = std::move(*memory);
  bell.event_ = std::move(event);
  bell.bit_ = bit;
  return bell;
}

void remote_doorbell::ring() noexcept {
  auto& page = *reinterpret_cast<doorbell_page*>(memory_.data());
  auto word = bit_ / 64;
  auto mask = uint64_t{1} << (bit_ % 64);
  // A bit that is still set here is cleared later by the owner, who then sees what was published
  // before this fence. Only this connection sets it, and the summary after it.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if ((page.ready[word].load(std::memory_order_relaxed) & mask) == 0) {
    page.ready[word].fetch_or(mask);
    page.summary.fetch_or(uint64_t{1} << word);
  }
  announce(page, event_.get());
}

} // namespace troupe::transport::soft
