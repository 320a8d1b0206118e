// A queue of a size that is chosen once.
#pragma once

#include <cstddef>
#include <vector>

namespace troupe::transport::soft {

template <class T>
class fixed_queue {
public:
  explicit fixed_queue(size_t capacity) : slots_(capacity) {}

  size_t size() const noexcept { return count_; }
  size_t capacity() const noexcept { return slots_.size(); }
  bool empty() const noexcept { return count_ == 0; }

  /// The element `index` places behind the front.
  T& operator[](size_t index) noexcept {
    auto place = first_ + index;
    return slots_[place < slots_.size() ? place : place - slots_.size()];
  }
  T& front() noexcept { return slots_[first_]; }

  /// There must be room.
  void push_back(T value) { slots_[place_of(count_++)] = std::move(value); }

  /// Must not be empty.
  T pop_front() {
    T value = std::move(slots_[first_]);
    first_ = first_ + 1 == slots_.size() ? 0 : first_ + 1;
    --count_;
    return value;
  }

private:
  size_t place_of(size_t index) const noexcept {
    auto place = first_ + index;
    return place < slots_.size() ? place : place - slots_.size();
  }

  std::vector<T> slots_;
  size_t first_ = 0;
  size_t count_ = 0;
};

} // namespace troupe::transport::soft
