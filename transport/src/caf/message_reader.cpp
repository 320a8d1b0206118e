#include "caf/message_reader.hpp"

#include <algorithm>
#include <caf/detail/ieee_754.hpp>
#include <cstring>
#include <sstream>

namespace troupe::transport {

namespace {

// Elements may take no bytes at all; of those, this many are believed.
constexpr size_t most_empty_elements = 64 * 1024;

} // namespace

caf::error message_reader::failure(caf::sec code) {
  failed_ = true;
  return code;
}

caf::error message_reader::begin_object(uint16_t& type, std::string& name) {
  if (auto error = apply_impl(type))
    return error;
  return type == 0 ? apply_impl(name) : caf::error{};
}

bool message_reader::at_hole(size_t size) const noexcept {
  return !holes_.empty() && holes_.front().position == position_ && holes_.front().length == size;
}

/// Seven bits a byte, the lowest first.
caf::error message_reader::begin_sequence(size_t& size) {
  uint64_t read = 0;
  for (unsigned shift = 0;; shift += 7) {
    uint8_t low = 0;
    if (auto error = apply_raw(sizeof low, &low))
      return error;
    if (shift > 56)
      return failure(caf::sec::invalid_argument);
    read |= static_cast<uint64_t>(low & 0x7F) << shift;
    if ((low & 0x80) == 0)
      break;
  }
  if (!at_hole(read) && read > std::max(rest().size(), most_empty_elements))
    return failure(caf::sec::end_of_stream);
  size = read;
  return caf::none;
}

caf::error message_reader::apply_raw(size_t size, void* data) {
  if (size > 0 && at_hole(size)) {
    places_.emplace_back(static_cast<std::byte*>(data), size);
    holes_ = holes_.subspan(1);
    return caf::none;
  }
  if (size > rest().size())
    return failure(caf::sec::end_of_stream);
  if (size > 0)
    std::memcpy(data, rest().data(), size);
  position_ += size;
  return caf::none;
}

caf::error message_reader::apply_impl(float& x) {
  uint32_t packed = 0;
  if (auto error = read_int<uint32_t>(packed))
    return error;
  x = caf::detail::unpack754(packed);
  return caf::none;
}

caf::error message_reader::apply_impl(double& x) {
  uint64_t packed = 0;
  if (auto error = read_int<uint64_t>(packed))
    return error;
  x = caf::detail::unpack754(packed);
  return caf::none;
}

caf::error message_reader::apply_impl(long double& x) {
  std::string text; // IEEE 754 names no format for it that all machines share
  if (auto error = apply_impl(text))
    return error;
  std::istringstream parsed{text};
  return parsed >> x ? caf::error{} : failure(caf::sec::invalid_argument);
}

caf::error message_reader::apply_impl(std::string& x) {
  size_t size = 0;
  if (auto error = begin_sequence(size))
    return error;
  if (!at_hole(size) && size > rest().size())
    return failure(caf::sec::end_of_stream);
  x.resize(size);
  return apply_raw(size, x.data());
}

template <class Wire, class String>
caf::error message_reader::read_wide(String& x) {
  size_t size = 0;
  if (auto error = begin_sequence(size))
    return error;
  if (size > rest().size() / sizeof(Wire))
    return failure(caf::sec::end_of_stream);
  x.resize(size);
  for (auto& each : x)
    if (auto error = read_int<Wire>(each))
      return error;
  return caf::none;
}

caf::error message_reader::apply_impl(std::u16string& x) {
  return read_wide<uint16_t>(x);
}

caf::error message_reader::apply_impl(std::u32string& x) {
  return read_wide<uint32_t>(x);
}

} // namespace troupe::transport
