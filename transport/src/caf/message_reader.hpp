// CAF's binary format, read from bytes that a peer has sent. Internal.
#pragma once

#include "troupe/transport/bytes.hpp"

#include <caf/deserializer.hpp>
#include <caf/detail/network_order.hpp>
#include <caf/execution_unit.hpp>
#include <caf/sec.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace troupe::transport {

/// A long run of bytes that is not among the others: how many of those come before it, and how long
/// it is.
struct hole_place {
  uint64_t position = 0;
  uint64_t length = 0;
};

/// Reads what `caf::binary_serializer` and `message_writer` write. Unlike CAF's own reader it
/// believes no length that the rest of the message cannot hold: a container is never made larger
/// than what was sent.
class message_reader final : public caf::deserializer {
public:
  /// `holes` are in the order of their positions and live as long as this.
  message_reader(caf::execution_unit& context, byte_view bytes,
                 std::span<const hole_place> holes = {})
      : deserializer(&context), bytes_(bytes), holes_(holes) {}

  /// Where the bytes of the holes belong, as far as they have been met; in containers that were
  /// read.
  const std::vector<byte_span>& places() const noexcept { return places_; }

  /// Whether anything could not be read. CAF does not pass on every error of a reader.
  bool failed() const noexcept { return failed_; }

  caf::error begin_object(uint16_t& type, std::string& name) override;
  caf::error end_object() override { return caf::none; }
  caf::error begin_sequence(size_t& size) override;
  caf::error end_sequence() override { return caf::none; }
  caf::error apply_raw(size_t size, void* data) override;

protected:
  caf::error apply_impl(int8_t& x) override { return apply_raw(sizeof x, &x); }
  caf::error apply_impl(uint8_t& x) override { return apply_raw(sizeof x, &x); }
  caf::error apply_impl(int16_t& x) override { return read_int<uint16_t>(x); }
  caf::error apply_impl(uint16_t& x) override { return read_int<uint16_t>(x); }
  caf::error apply_impl(int32_t& x) override { return read_int<uint32_t>(x); }
  caf::error apply_impl(uint32_t& x) override { return read_int<uint32_t>(x); }
  caf::error apply_impl(int64_t& x) override { return read_int<uint64_t>(x); }
  caf::error apply_impl(uint64_t& x) override { return read_int<uint64_t>(x); }
  caf::error apply_impl(float& x) override;
  caf::error apply_impl(double& x) override;
  caf::error apply_impl(long double& x) override;
  caf::error apply_impl(std::string& x) override;
  caf::error apply_impl(std::u16string& x) override;
  caf::error apply_impl(std::u32string& x) override;

private:
  template <class Wire, class T>
  caf::error read_int(T& x) {
    Wire read = 0;
    if (auto error = apply_raw(sizeof read, &read))
      return error;
    x = static_cast<T>(caf::detail::from_network_order(read));
    return caf::none;
  }

  template <class Wire, class String>
  caf::error read_wide(String& x);

  byte_view rest() const noexcept { return bytes_.subspan(position_); }
  bool at_hole(size_t size) const noexcept;
  caf::error failure(caf::sec code);

  byte_view bytes_;
  size_t position_ = 0;
  std::span<const hole_place> holes_; // not met yet
  std::vector<byte_span> places_;
  bool failed_ = false;
};

} // namespace troupe::transport
