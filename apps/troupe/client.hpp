// The command line's connection to the controller.
#pragma once

#include "protocol.hpp"
#include "reply.hpp"

#include "troupe/transport/endpoint.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

namespace troupe::cli {

class interrupts;

/// How long the controller may take to answer; `std::nullopt` means any time.
using patience = std::optional<std::chrono::milliseconds>;

constexpr std::chrono::milliseconds usual_patience{20'000};

/// An answer that is under way. Destroying it gives the request up.
template <class Answer>
class pending {
public:
  explicit pending(std::shared_ptr<reply<Answer>> coming) : coming_(std::move(coming)) {}
  pending(pending&&) noexcept = default;
  pending& operator=(pending&&) noexcept = default;
  ~pending() {
    if (coming_)
      coming_->give_up();
  }

  /// Waits for it, at most `limit`.
  /// @returns whether it is there, or `stop` was raised: then `get` does not wait.
  bool wait(patience limit, const interrupts& stop) const { return coming_->wait(limit, stop); }

  /// The answer; a failure of kind `interrupted` when there is none yet.
  answer<Answer> get() const { return coming_->take(); }

private:
  std::shared_ptr<reply<Answer>> coming_;
};

/// An actor system of its own, connected to one controller. One thread.
class client {
public:
  /// Connects to the controller at `where`. `device` is as for `open_device`; no environment
  /// variable overrides it here. `key_file` holds the cluster's key; empty: none.
  /// @returns a failure of kind `connection` that says who, why and what to do.
  static answer<std::unique_ptr<client>> connect(const transport::endpoint& where,
                                                 const std::string& device,
                                                 const std::filesystem::path& key_file,
                                                 const interrupts& stop);

  ~client();
  client(const client&) = delete;
  client& operator=(const client&) = delete;

  /// Sends `request` to the controller. It is answered at the latest after `limit`, with a failure
  /// of kind `connection` then, and at once when the controller goes away.
  /// Made for every request of `protocol.hpp`.
  template <class Request>
  pending<answer_to<Request>> start(Request request, patience limit);

  /// Likewise, and waits.
  template <class Request>
  answer<answer_to<Request>> ask(Request request, patience limit, const interrupts& stop) {
    auto coming = start(std::move(request), limit);
    coming.wait(std::nullopt, stop);
    return coming.get();
  }

  /// Whether an attempt to connect that was interrupted is still giving up, in a thread of its own.
  /// It ends by itself; a process that does not want to wait must end without destroying statics.
  static bool left_behind();

  /// Whether the controller went away.
  bool lost() const;

  /// Where the controller is.
  const transport::endpoint& where() const noexcept { return where_; }

  /// The device in use.
  std::string device_name() const;

private:
  struct parts;

  client(transport::endpoint where, std::unique_ptr<parts> made);

  transport::endpoint where_;
  std::unique_ptr<parts> parts_;
};

} // namespace troupe::cli
