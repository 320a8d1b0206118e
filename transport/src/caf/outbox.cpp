#include "caf/outbox.hpp"

#include <cstddef>
#include <iterator>

namespace troupe::transport {

namespace {

// A message of this size is worth a segment of its own: sharing one would cost a copy.
constexpr size_t long_message = 16 * 1024;

} // namespace

bool outbox::put(bytes& message) {
  auto first = false;
  {
    std::lock_guard held{mutex_};
    if (closed_)
      return false;
    first = segments_.empty();
    if (message.size() >= long_message) {
      segments_.push_back(std::move(message));
      message = {};
    } else {
      if (first || segments_.back().size() >= long_message) {
        segments_.push_back(std::move(spare_));
        spare_ = {};
      }
      segments_.back().insert(segments_.back().end(), message.begin(), message.end());
    }
  }
  if (first)
    on_first_();
  return true;
}

void outbox::take_all(std::vector<bytes>& out) {
  std::lock_guard held{mutex_};
  if (out.empty()) {
    out.swap(segments_);
  } else {
    std::move(segments_.begin(), segments_.end(), std::back_inserter(out));
    segments_.clear();
  }
}

void outbox::recycle(bytes empty) {
  std::lock_guard held{mutex_};
  if (empty.capacity() > spare_.capacity())
    spare_ = std::move(empty);
}

void outbox::close() {
  std::lock_guard held{mutex_};
  closed_ = true;
  segments_.clear();
}

} // namespace troupe::transport
