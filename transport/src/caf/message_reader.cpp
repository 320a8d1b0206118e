#include "caf/message_reader.hpp"

#include <algorithm>
#include <caf/detail/ieee_754.hpp>
#include <caf/sec.hpp>
#include <cstring>
#include <sstream>

namespace troupe::transport {

namespace {

// Elements may take no bytes at all; of those, this many are believed.
constexpr size_t most_empty_elements = 64 * 1024;

} // namespace

caf::error message_reader::begin_object(uint16_t& type, std::string& name) {
  if (auto error = apply_impl(type))
    return error;
  return type == 0 ? apply_impl(name) : caf::error{};
}

/// Seven bits a byte, the lowest first.
caf::error message_reader::begin_sequence(size_t& size) {
  uint32_t read = 0;
  for (unsigned shift = 0;; shift += 7) {
    uint8_t low = 0;
    if (auto error = apply_raw(sizeof low, &low))
      return error;
    if (shift > 28 || (shift == 28 && low > 0x0F))
      return caf::make_error(caf::sec::invalid_argument, "a length of more than 32 bits");
    read |= static_cast<uint32_t>(low & 0x7F) << shift;
    if ((low & 0x80) == 0)
      break;
  }
  if (read > std::max(rest_.size(), most_empty_elements))
    return caf::make_error(caf::sec::end_of_stream, "more elements than bytes");
  size = read;
  return caf::none;
}

caf::error message_reader::apply_raw(size_t size, void* data) {
  if (size > rest_.size())
    return caf::sec::end_of_stream;
  if (size > 0)
    std::memcpy(data, rest_.data(), size);
  rest_ = rest_.subspan(size);
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
  return parsed >> x ? caf::error{} : caf::error{caf::sec::invalid_argument};
}

caf::error message_reader::apply_impl(std::string& x) {
  size_t size = 0;
  if (auto error = begin_sequence(size))
    return error;
  if (size > rest_.size())
    return caf::sec::end_of_stream;
  x.assign(reinterpret_cast<const char*>(rest_.data()), size);
  rest_ = rest_.subspan(size);
  return caf::none;
}

template <class Wire, class String>
caf::error message_reader::read_wide(String& x) {
  size_t size = 0;
  if (auto error = begin_sequence(size))
    return error;
  if (size > rest_.size() / sizeof(Wire))
    return caf::sec::end_of_stream;
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
