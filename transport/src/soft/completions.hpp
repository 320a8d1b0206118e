// The soft device's completion queue, which also moves its pairs' data when polled.
//
// Pairs in shared memory are found through the doorbell, without a system call. Sockets are asked
// for input when the loop has just slept or is about to (acknowledge, arm), while they have lately
// been busy, and otherwise at every `idle_polls`-th poll.
#pragma once

#include "soft/descriptor.hpp"
#include "soft/doorbell.hpp"
#include "troupe/transport/device.hpp"

#include <deque>
#include <memory>
#include <vector>

namespace troupe::transport::soft {

class pair;

class completions final : public completion_queue {
public:
  static result<std::unique_ptr<completions>> make();

  completions(descriptor epoll, std::unique_ptr<doorbell> bell);

  size_t poll(std::span<completion> out) override;
  void arm() override;
  void acknowledge() override;
  int fd() const noexcept override { return epoll_.get(); }

  // -- for pairs --------------------------------------------------------------------------------

  /// Adds a completion at the end.
  void push(const completion& done);

  /// Lets `who` go on at the next poll, which will come soon.
  void run_later(pair& who);

  /// Reserves a bit of the doorbell for `who`; nothing when all are taken.
  std::optional<uint32_t> add_shared(pair& who);
  doorbell& bell() noexcept { return *bell_; }

  status add_socket(pair& who, int socket);
  /// Whether `who` wants to hear when its socket takes more output.
  void watch_output(pair& who, int socket, bool wanted);
  void remove_socket(int socket, bool wanted_output);

  /// Forgets everything of `who`.
  void remove(pair& who, std::optional<uint32_t> bit);

private:
  void turn(size_t wanted);
  void check_sockets();

  descriptor epoll_; // the doorbell's eventfd and the sockets
  std::unique_ptr<doorbell> bell_;
  std::deque<completion> ready_;
  std::vector<pair*> by_bit_;
  std::vector<pair*> run_;
  std::vector<pair*> running_;
  std::vector<uint32_t> bits_;
  size_t sockets_ = 0;
  size_t outputs_wanted_ = 0;
  int polls_until_check_ = 0;
  bool polling_ = false;
};

} // namespace troupe::transport::soft
