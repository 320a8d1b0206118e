// What a task wrote to its standard output or standard error: byte for byte, of any size.
#pragma once

#include "troupe/actors/unique_fd.hpp"
#include "troupe/transport/bytes.hpp"
#include "troupe/transport/error.hpp"

#include <cstddef>
#include <cstdint>

namespace troupe::cluster {

/// A mapping of a captured output, fit to be registered for remote reading; unmapped when
/// destroyed. May outlive the `captured_output` it came from. Any thread.
class mapped_output {
public:
  mapped_output() = default;
  mapped_output(mapped_output&& other) noexcept;
  mapped_output& operator=(mapped_output&& other) noexcept;
  ~mapped_output();

  /// All of the output; empty when there was none. Valid as long as this object.
  transport::byte_view bytes() const noexcept { return {data_, size_}; }

private:
  friend class captured_output;
  mapped_output(const std::byte* data, size_t size) noexcept : data_(data), size_(size) {}

  const std::byte* data_ = nullptr;
  size_t size_ = 0; // bytes
};

/// The output of an ended task, in a file without a name: the space is free again once this object
/// and its mappings are gone. Holds one file descriptor. Any thread, one at a time.
class captured_output {
public:
  /// No output.
  captured_output() = default;

  /// Takes over `file`, whose writers must have ended: its length is taken now.
  explicit captured_output(unique_fd file) noexcept;

  uint64_t size() const noexcept { return size_; } ///< bytes

  /// Copies bytes from `offset` on into `out`.
  /// @returns how many: less than `out.size()` only at the end of the output, 0 past it.
  result<size_t> read(uint64_t offset, transport::byte_span out) const;

  /// Maps the whole output.
  result<mapped_output> map() const;

private:
  unique_fd file_;
  uint64_t size_ = 0;
};

} // namespace troupe::cluster
