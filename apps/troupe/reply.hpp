// An answer on its way from an actor's thread to the thread that waits for it.
#pragma once

#include "interrupts.hpp"

#include "troupe/transport/error.hpp"

#include <cerrno>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

namespace troupe::cli {

/// Why there is no answer.
struct failure {
  enum class kind : unsigned char {
    cluster,     ///< the controller said no
    connection,  ///< there is no controller, it went away, or it does not answer
    interrupted, ///< Ctrl-C
    usage,       ///< what was asked for cannot be
  };
  kind what = kind::cluster;
  error why;
};

template <class T>
using answer = tl::expected<T, failure>;

/// Makes the failed state of any `answer`.
inline tl::unexpected<failure> fail_with(failure::kind what, error why) {
  return tl::unexpected<failure>(failure{what, std::move(why)});
}

/// The part of a reply that does not depend on its type: a flag that can be slept on.
class arrival_flag {
public:
  arrival_flag();
  ~arrival_flag();
  arrival_flag(const arrival_flag&) = delete;
  arrival_flag& operator=(const arrival_flag&) = delete;

  /// False when the system gave no descriptor: then `wait` does not wait.
  bool usable() const noexcept { return fd_ >= 0; }

  /// Any thread.
  void raise();

  /// Waits until it is raised, `stop` is, or `limit` has passed.
  /// @returns false only for the limit.
  bool wait(std::optional<std::chrono::milliseconds> limit, const interrupts& stop) const;

private:
  int fd_ = -1;
};

/// Set once, by any thread; taken by one thread.
template <class T>
class reply {
public:
  reply() {
    if (!arrived_.usable())
      value_ = fail_with(failure::kind::connection,
                         system_error("cannot wait for an answer: eventfd", errno));
  }

  void set(answer<T> value) {
    {
      std::lock_guard hold{guard_};
      if (value_)
        return;
      value_ = std::move(value);
    }
    arrived_.raise();
  }

  bool wait(std::optional<std::chrono::milliseconds> limit, const interrupts& stop) const {
    return arrived_.wait(limit, stop);
  }

  answer<T> take() {
    std::lock_guard hold{guard_};
    if (!value_)
      return fail_with(failure::kind::interrupted, {errc::flushed, "interrupted"});
    return *std::exchange(value_, std::nullopt);
  }

  /// What `give_up` calls, from the taking thread.
  void on_give_up(std::function<void()> action) { give_up_ = std::move(action); }

  /// The answer is not wanted any more.
  void give_up() {
    if (give_up_)
      std::exchange(give_up_, nullptr)();
  }

private:
  mutable std::mutex guard_;
  std::optional<answer<T>> value_;
  std::function<void()> give_up_;
  arrival_flag arrived_;
};

} // namespace troupe::cli
