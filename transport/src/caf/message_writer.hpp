// CAF's binary format, with what is long left where it lies. Internal.
#pragma once

#include "troupe/transport/bytes.hpp"

#include <caf/detail/network_order.hpp>
#include <caf/serializer.hpp>
#include <caf/type_erased_tuple.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::transport {

/// A long run of bytes that was left out of a message's other bytes.
struct hole {
  uint64_t position = 0; ///< of the byte that would follow, among the bytes that are there
  byte_view bytes;
};

/// Writes what `caf::binary_serializer` writes, to the end of a vector, except for the elements of
/// a message that are one long run of bytes (`std::string`, `std::vector` of a byte type): those
/// stay in the message and become holes. The message must stay alive and unchanged until its holes
/// have been read.
class message_writer final : public caf::serializer {
public:
  /// Runs of at least `long_run` bytes that are an element of `message` become holes.
  message_writer(caf::actor_system& system, std::vector<char>& out,
                 const caf::type_erased_tuple& message, size_t long_run)
      : serializer(system), out_(out), begin_(out.size()), message_(message), long_run_(long_run) {}

  const std::vector<hole>& holes() const noexcept { return holes_; }

  caf::error begin_object(uint16_t& type, std::string& name) override;
  caf::error end_object() override { return caf::none; }
  caf::error begin_sequence(size_t& size) override;
  caf::error end_sequence() override { return caf::none; }
  caf::error apply_raw(size_t size, void* data) override;

protected:
  caf::error apply_impl(int8_t& x) override { return append(&x, sizeof x); }
  caf::error apply_impl(uint8_t& x) override { return append(&x, sizeof x); }
  caf::error apply_impl(int16_t& x) override { return write_int(static_cast<uint16_t>(x)); }
  caf::error apply_impl(uint16_t& x) override { return write_int(x); }
  caf::error apply_impl(int32_t& x) override { return write_int(static_cast<uint32_t>(x)); }
  caf::error apply_impl(uint32_t& x) override { return write_int(x); }
  caf::error apply_impl(int64_t& x) override { return write_int(static_cast<uint64_t>(x)); }
  caf::error apply_impl(uint64_t& x) override { return write_int(x); }
  caf::error apply_impl(float& x) override;
  caf::error apply_impl(double& x) override;
  caf::error apply_impl(long double& x) override;
  caf::error apply_impl(std::string& x) override;
  caf::error apply_impl(std::u16string& x) override;
  caf::error apply_impl(std::u32string& x) override;

private:
  caf::error append(const void* data, size_t size);
  bool stays(const void* data, size_t size) const;

  template <class T>
  caf::error write_int(T x) {
    auto wire = caf::detail::to_network_order(x);
    return append(&wire, sizeof wire);
  }

  std::vector<char>& out_;
  size_t begin_;
  const caf::type_erased_tuple& message_;
  size_t long_run_;
  std::vector<hole> holes_;
};

} // namespace troupe::transport
