// Little-endian fields in fixed memory, and the header that both kinds of slots begin with.
// Internal.
#pragma once

#include "troupe/framework/crc32c.hpp"
#include "troupe/transport/bytes.hpp"
#include "troupe/transport/device.hpp"
#include "troupe/transport/error.hpp"

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::cluster::wire {

using transport::byte_span;
using transport::byte_view;
using transport::remote_region;

/// Writes fields one after the other. What does not fit is not written, and `ok()` turns false.
class writer {
public:
  explicit writer(byte_span memory) : memory_(memory) {}

  template <class Unsigned>
  void number(Unsigned value) {
    if (auto* to = take(sizeof value))
      for (size_t i = 0; i < sizeof value; ++i)
        to[i] = static_cast<std::byte>(uint64_t{value} >> (8 * i));
  }

  void bytes(byte_view data) {
    if (auto* to = take(data.size()); to && !data.empty())
      std::memcpy(to, data.data(), data.size());
  }

  void region(const remote_region& where) {
    number(where.address);
    number(where.length);
    number(where.key);
  }

  bool ok() const noexcept { return ok_; }
  size_t used() const noexcept { return used_; }

private:
  std::byte* take(size_t count) {
    ok_ = ok_ && count <= memory_.size() - used_;
    if (!ok_)
      return nullptr;
    auto* at = memory_.data() + used_;
    used_ += count;
    return at;
  }

  byte_span memory_;
  size_t used_ = 0;
  bool ok_ = true;
};

/// Reads fields one after the other. What is not there reads as zero, and `ok()` turns false.
class reader {
public:
  explicit reader(byte_view memory) : rest_(memory) {}

  template <class Unsigned>
  Unsigned number() {
    uint64_t value = 0;
    auto data = bytes(sizeof(Unsigned));
    for (size_t i = 0; i < data.size(); ++i)
      value |= std::to_integer<uint64_t>(data[i]) << (8 * i);
    return static_cast<Unsigned>(value);
  }

  byte_view bytes(uint64_t count) {
    ok_ = ok_ && count <= rest_.size();
    if (!ok_)
      return {};
    auto data = rest_.first(static_cast<size_t>(count));
    rest_ = rest_.subspan(static_cast<size_t>(count));
    return data;
  }

  /// A region whose end is within the address space.
  remote_region region() {
    remote_region where;
    where.address = number<uint64_t>();
    where.length = number<uint64_t>();
    where.key = number<uint32_t>();
    ok_ = ok_ && where.address + where.length >= where.address;
    return where;
  }

  bool ok() const noexcept { return ok_; }
  bool at_end() const noexcept { return rest_.empty(); }

private:
  byte_view rest_;
  bool ok_ = true;
};

/// Bytes that `region` takes.
constexpr size_t region_bytes = 20;

/// Every slot begins with: magic (4 bytes), version (2), form (2: how the variable part is kept),
/// length of all that is used (4), checksum of all that is used, itself taken as zero (4).
constexpr size_t header_bytes = 16;

/// Fills in the header in front of what has been written to `slot`, up to byte `used`.
inline void seal(byte_span slot, uint32_t magic, uint16_t version, uint16_t form, size_t used) {
  writer out{slot};
  out.number(magic);
  out.number(version);
  out.number(form);
  out.number(static_cast<uint32_t>(used));
  out.number(uint32_t{0});
  auto checksum = crc32c(slot.first(used));
  writer{slot.subspan(header_bytes - sizeof checksum)}.number(checksum);
}

/// What a sound slot holds behind its header.
struct opened_slot {
  uint16_t form = 0;
  byte_view content;
};

/// Checks the header and the checksum of `slot`, in which the checksum is then set to zero. `slot`
/// must be a private copy: a peer may go on writing into its original.
/// @returns `errc::protocol_violation`, naming `what`.
inline result<opened_slot> open(byte_span slot, uint32_t magic, uint16_t version,
                                std::string_view what) {
  auto bad = [&](const std::string& why) {
    return fail(errc::protocol_violation, std::string{what} + ": " + why);
  };
  reader in{slot};
  auto found_magic = in.number<uint32_t>();
  auto found_version = in.number<uint16_t>();
  auto form = in.number<uint16_t>();
  auto length = in.number<uint32_t>();
  auto checksum = in.number<uint32_t>();
  if (!in.ok() || found_magic != magic)
    return bad("these bytes are none");
  if (found_version != version)
    return fail(errc::version_mismatch, std::string{what} + ": version " +
                                            std::to_string(found_version) + ", expected " +
                                            std::to_string(version));
  if (length < header_bytes || length > slot.size())
    return bad("its length of " + std::to_string(length) + " bytes is impossible");
  writer{slot.subspan(header_bytes - sizeof checksum)}.number(uint32_t{0});
  if (crc32c(slot.first(length)) != checksum)
    return bad("its checksum is wrong");
  return opened_slot{form, slot.first(length).subspan(header_bytes)};
}

} // namespace troupe::cluster::wire
