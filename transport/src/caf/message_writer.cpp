#include "caf/message_writer.hpp"

#include <caf/detail/ieee_754.hpp>
#include <iomanip>
#include <limits>
#include <sstream>

namespace troupe::transport {

namespace {

template <class T>
bool is_run(const caf::type_erased_tuple& message, size_t element, const void* data, size_t size) {
  if (!message.match_element<T>(element))
    return false;
  auto& value = message.get_as<T>(element);
  return value.data() == data && value.size() == size;
}

} // namespace

/// Whether these bytes are an element of the message, and not something that lives for this call
/// only.
bool message_writer::stays(const void* data, size_t size) const {
  for (size_t i = 0; i < message_.size(); ++i)
    if (is_run<std::vector<char>>(message_, i, data, size) ||
        is_run<std::vector<uint8_t>>(message_, i, data, size) ||
        is_run<std::vector<int8_t>>(message_, i, data, size) ||
        is_run<std::string>(message_, i, data, size))
      return true;
  return false;
}

caf::error message_writer::append(const void* data, size_t size) {
  auto bytes = static_cast<const char*>(data);
  out_.insert(out_.end(), bytes, bytes + size);
  return caf::none;
}

caf::error message_writer::apply_raw(size_t size, void* data) {
  if (size < long_run_ || !stays(data, size))
    return append(data, size);
  holes_.push_back({out_.size() - begin_, {static_cast<const std::byte*>(data), size}});
  return caf::none;
}

caf::error message_writer::begin_object(uint16_t& type, std::string& name) {
  write_int(type);
  return type == 0 ? apply_impl(name) : caf::error{};
}

/// Seven bits a byte, the lowest first. CAF's own writes 32 bits at most.
caf::error message_writer::begin_sequence(size_t& size) {
  auto rest = size;
  for (; rest > 0x7F; rest >>= 7)
    out_.push_back(static_cast<char>((rest & 0x7F) | 0x80));
  out_.push_back(static_cast<char>(rest));
  return caf::none;
}

caf::error message_writer::apply_impl(float& x) {
  return write_int(caf::detail::pack754(x));
}

caf::error message_writer::apply_impl(double& x) {
  return write_int(caf::detail::pack754(x));
}

caf::error message_writer::apply_impl(long double& x) {
  std::ostringstream text; // IEEE 754 names no format for it that all machines share
  text << std::setprecision(std::numeric_limits<long double>::max_digits10) << x;
  auto written = text.str();
  return apply_impl(written);
}

caf::error message_writer::apply_impl(std::string& x) {
  auto size = x.size();
  begin_sequence(size);
  return apply_raw(size, x.data());
}

caf::error message_writer::apply_impl(std::u16string& x) {
  auto size = x.size();
  begin_sequence(size);
  for (auto each : x)
    write_int(static_cast<uint16_t>(each));
  return caf::none;
}

caf::error message_writer::apply_impl(std::u32string& x) {
  auto size = x.size();
  begin_sequence(size);
  for (auto each : x)
    write_int(static_cast<uint32_t>(each));
  return caf::none;
}

} // namespace troupe::transport
