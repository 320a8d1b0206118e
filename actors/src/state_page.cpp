#include "troupe/actors/state_page.hpp"

#include "wire.hpp"

#include <new>
#include <string>

namespace troupe::cluster {

namespace {

using transport::byte_span;
using transport::byte_view;

constexpr uint32_t magic = 0x45544154; // "TATE"
constexpr uint32_t version = 1;

// Word 0 is magic and version, word 1 the sequence, the last one the checksum of all others.
constexpr size_t word_count = state_page_bytes / sizeof(uint64_t);
constexpr size_t sequence_word = 1;
constexpr size_t checksum_word = word_count - 1;
using page_image = std::array<std::byte, state_page_bytes>;

page_image image_of(const state_snapshot& state, uint64_t sequence) {
  page_image image{};
  wire::writer out{image};
  out.number(magic);
  out.number(version);
  out.number(sequence);
  out.number(state.incarnation);
  out.number(state.epoch);
  out.number(state.cpu_busy_permille);
  out.number(state.load_permille);
  out.number(state.memory_total);
  out.number(state.memory_available);
  out.number(state.running_tasks);
  out.number(state.finished_tasks);
  auto content = byte_view{image}.first(checksum_word * sizeof(uint64_t));
  auto checksum = crc32c(content);
  wire::writer{byte_span{image}.subspan(content.size())}.number(uint64_t{checksum});
  return image;
}

// A word such that storing it leaves these bytes in memory.
uint64_t word_of(const page_image& image, size_t index) {
  uint64_t word = 0;
  std::memcpy(&word, image.data() + index * sizeof word, sizeof word);
  return word;
}

} // namespace

result<state_page_writer> state_page_writer::create(byte_span memory) {
  auto address = reinterpret_cast<uintptr_t>(memory.data());
  if (memory.size() < sizeof(state_page) || address % alignof(state_page) != 0)
    return fail(errc::invalid_argument,
                "a state page needs 128 bytes that begin at a multiple of 64");
  return state_page_writer{*new (memory.data()) state_page{}};
}

void state_page_writer::publish(const state_snapshot& state) noexcept {
  auto store = [this](const page_image& image, size_t index) {
    page_->words[index].store(word_of(image, index), std::memory_order_release);
  };
  auto odd = image_of(state, sequence_ + 1);
  sequence_ += 2;
  auto even = image_of(state, sequence_);
  // Release on every store: no word becomes visible before the odd sequence, nor after the even
  // one.
  store(odd, sequence_word);
  for (size_t index = 0; index < word_count; ++index)
    if (index != sequence_word)
      store(even, index);
  store(even, sequence_word);
}

result<state_snapshot> read_snapshot(byte_view copy) {
  wire::reader in{copy};
  if (in.number<uint32_t>() != magic || copy.size() < state_page_bytes)
    return fail(errc::protocol_violation, "state page: these bytes are none");
  if (auto found = in.number<uint32_t>(); found != version)
    return fail(errc::version_mismatch, "state page: version " + std::to_string(found) +
                                            ", expected " + std::to_string(version));
  auto sequence = in.number<uint64_t>();
  state_snapshot state;
  state.incarnation = in.number<uint64_t>();
  state.epoch = in.number<uint64_t>();
  state.cpu_busy_permille = in.number<uint32_t>();
  state.load_permille = in.number<uint32_t>();
  state.memory_total = in.number<uint64_t>();
  state.memory_available = in.number<uint64_t>();
  state.running_tasks = in.number<uint64_t>();
  state.finished_tasks = in.number<uint64_t>();
  auto content = copy.first(checksum_word * sizeof(uint64_t));
  wire::reader last{copy.subspan(content.size())};
  if (sequence % 2 != 0 || last.number<uint64_t>() != crc32c(content))
    return fail(errc::no_resources, "state page: it was being written; read it again");
  return state;
}

} // namespace troupe::cluster
