#include "caf/outbox.hpp"

#include <cstddef>
#include <iterator>

namespace troupe::transport {

namespace {

// A message of this size is worth a segment of its own: sharing one would cost a copy.
constexpr size_t long_message = 16 * 1024;

} // namespace

bool outbox::put(bytes& message, std::vector<attachment> attached) {
  auto first = false;
  {
    std::lock_guard held{mutex_};
    if (closed_)
      return false;
    first = segments_.empty();
    if (message.size() >= long_message || !attached.empty()) {
      segments_.push_back({std::move(message), std::move(attached)});
      message = {};
    } else {
      if (first || segments_.back().bytes.size() >= long_message ||
          !segments_.back().attached.empty()) {
        segments_.push_back({std::move(spare_), {}});
        spare_ = {};
      }
      auto& last = segments_.back().bytes;
      last.insert(last.end(), message.begin(), message.end());
    }
  }
  if (first)
    on_first_();
  return true;
}

void outbox::take_all(std::vector<segment>& out) {
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
