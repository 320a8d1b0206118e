// The heart of the event loop: one device, one completion queue, connections and timers, advanced
// in turns. Knows no CAF; whoever owns the thread decides when to sleep.
#pragma once

#include "troupe/transport/device.hpp"
#include "troupe/transport/introduction.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace troupe::transport {

/// Handles the completions and events of one queue pair, whose `owner` it is. Called by the engine,
/// on its thread.
class connection_handler {
public:
  virtual ~connection_handler() = default;

  virtual void on_completion(const completion& done) = 0;

  /// The connection stands. `private_data` is the acceptor's answer on the connecting side, else
  /// empty.
  virtual void on_established(byte_view private_data) = 0;

  /// It failed to come up, or ended. Called at most once; nothing is called after it.
  /// `private_data` is what a refusing listener gave, else empty.
  virtual void on_closed(const error& reason, byte_view private_data) = 0;
};

/// Turns of the loop:
///
///     while (running) {
///       if (loop.turn())
///         continue;
///       loop.prepare_to_sleep();             // arm ...
///       if (!loop.turn())                    // ... then look once more: something may have landed
///       in between
///         sleep until one of `loop.fds()` is readable, then `loop.wake_up(fd)`
///       loop.awake();
///     }
///
/// `turn_or_sleep` does all of that for users without an epoll of their own. Everything belongs to
/// one thread, except `notify`.
class engine {
public:
  using clock = std::chrono::steady_clock;
  using timer_id = uint64_t;
  using request_handler = std::function<void(std::unique_ptr<connection_request>)>;

  /// Opens the device of that name (see `open_device`). Whoever connects must have `key`; when it
  /// is null, be of this user and on this machine.
  static result<std::unique_ptr<engine>> open(std::string_view device_name,
                                              shared_key_ptr key = nullptr);

  ~engine();
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;

  device& adapter() noexcept { return *device_; }

  /// Why this device was chosen, in words for people.
  const std::string& choice() const noexcept { return choice_; }

  // -- connections --------------------------------------------------------------------------------

  /// Decides who may connect.
  gate& admission() noexcept { return gate_; }

  /// Queue depths that fit the device, on this engine's completion queue.
  /// @returns `errc::limit_too_low` when the completion queue has no room for another connection.
  result<queue_pair_config> reserve_queues(uint32_t send_depth, uint32_t receive_depth);

  /// Starts to connect; `handler` must outlive the pair. Queues come from `reserve_queues`.
  result<std::unique_ptr<queue_pair>>
  connect(const endpoint& remote, const queue_pair_config& queues, byte_view private_data,
          std::chrono::milliseconds timeout, connection_handler& handler);

  /// Listens; `on_request` is called for each connection that a peer asks for. Without a key, an
  /// empty host means 127.0.0.1.
  /// @returns `errc::unauthenticated` for an address that others than this machine reach, when
  /// there is no key.
  result<std::unique_ptr<listener>> listen(const endpoint& local, request_handler on_request);

  /// Stops listening.
  void unlisten(std::unique_ptr<listener> which);

  /// Gives a pair (and the depths reserved for it) back: no more calls to its handler. It is
  /// destroyed at the end of the turn, so that this is allowed from within a handler; `memory`,
  /// which its posted work may still touch, is released after it.
  void retire(std::unique_ptr<queue_pair> pair, const queue_pair_config& queues,
              std::shared_ptr<void> memory);

  // -- timers
  // ---------------------------------------------------------------------------------------

  /// Calls `action` once, `delay` from now at the earliest.
  timer_id after(clock::duration delay, std::function<void()> action);

  /// Forgets a timer; harmless when it has run.
  void cancel(timer_id timer);

  // -- turns
  // ------------------------------------------------------------------------------------------

  /// Handles what is there: completions, connection events, due timers.
  /// @returns whether there was anything.
  bool turn();

  /// Makes sure that whatever comes from now on makes one of `fds()` readable.
  void prepare_to_sleep();

  /// Call after sleeping or after deciding not to.
  void awake() noexcept { sleeping_.store(false, std::memory_order_relaxed); }

  /// To be watched for input while sleeping: completion queue, connection events, notifications,
  /// timers.
  std::array<int, 4> fds() const noexcept;

  /// Consumes the readiness of `fd`, one of `fds()`.
  void wake_up(int fd);

  /// Ends the loop's sleep if it sleeps; costs one atomic exchange if not. Any thread.
  void notify() noexcept;

  /// One turn; when it found nothing, sleeps at most `limit` for the next thing to do.
  void turn_or_sleep(std::chrono::milliseconds limit);

private:
  engine(std::unique_ptr<device> opened, std::string choice,
         std::unique_ptr<completion_queue> completions, uint32_t completion_room,
         shared_key_ptr key);

  bool poll_completions();
  bool handle_events();
  bool run_timers();
  void set_alarm();

  using timer_map = std::multimap<clock::time_point, std::pair<timer_id, std::function<void()>>>;

  std::unique_ptr<device> device_;
  std::string choice_;
  std::unique_ptr<completion_queue> completions_;
  std::array<completion, 64>
      batch_;                // of the turn; making it anew would cost more than an empty poll
  uint32_t completion_room_; // entries not yet promised to a queue pair
  gate gate_;
  std::unordered_map<listener*, request_handler> listeners_;
  struct retired_pair {
    std::shared_ptr<void> memory; // stands first: goes last
    std::unique_ptr<queue_pair> pair;
  };
  std::vector<retired_pair> retired_;
  timer_map timers_;
  timer_id last_timer_ = 0;
  clock::time_point alarm_ = clock::time_point::max();
  int wake_fd_ = -1;
  int alarm_fd_ = -1;
  bool events_waiting_ = true;
  uint32_t turns_ = 0;
  std::atomic<bool> sleeping_ = false;
};

} // namespace troupe::transport
