// CAF's network backend on the engine: one loop thread for RDMA, for CAF's own TCP servants and for
// everything that CAF wants to run there. Internal.
#pragma once

#include "caf/caf_version.hpp"
#include "caf/outbox.hpp"
#include "handler_budget.hpp"
#include "loop_role.hpp"
#include "mpsc_queue.hpp"
#include "spin_policy.hpp"
#include "troupe/transport/channel.hpp"
#include "troupe/transport/engine.hpp"
#include "troupe/transport/memory_service.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace troupe::transport {

class stream_doorman;
class stream_scribe;

/// Derives from CAF's multiplexer for its TCP servants and its epoll, in which this loop sleeps
/// too: the engine's descriptors are watched there like any other.
///
/// Actors that a message has made runnable run on the loop as well, as long as they are quick (see
/// handler_budget). "The loop thread" is the one that has the role just now (see loop_role): a
/// handler that blocks loses it, and then goes on like any other thread.
class multiplexer final : public caf::io::network::default_multiplexer {
public:
  explicit multiplexer(caf::actor_system* system);
  ~multiplexer() override;

  struct settings {
    std::string device = "auto";
    result<shared_key_ptr> key; ///< null without one
    channel_options channels;
    std::chrono::milliseconds connect_timeout{10'000};
    std::chrono::milliseconds shutdown_timeout{5'000};
    std::chrono::nanoseconds spin_window{};
    bool run_handlers = true; // on the loop
  };

  /// Opens the device; call before the loop runs. On failure the loop is CAF's own and every
  /// publish and connect fails with the error.
  void open(settings chosen);

  const status& ready() const noexcept { return ready_; }
  engine& loop() noexcept { return *engine_; }
  memory_service& memory() noexcept { return *memory_; }

  /// Between these two calls the first thread that opens a port is remembered as that of CAF's
  /// middleman actor: its ports and connections are RDMA, everybody else's are plain TCP.
  void begin_probe() noexcept { probing_ = true; }
  void end_probe() noexcept { probing_ = false; }

  // -- called by CAF, any thread
  // ------------------------------------------------------------------------
  caf::expected<caf::io::scribe_ptr> new_tcp_scribe(const std::string& host,
                                                    uint16_t port) override;
  caf::expected<caf::io::doorman_ptr> new_tcp_doorman(uint16_t port, const char* in,
                                                      bool reuse_addr) override;
  void exec_later(caf::resumable* ptr) override;
  supervisor_ptr make_supervisor() override;

  // -- the loop
  // -------------------------------------------------------------------------------------------
  bool try_run_once() override;
  void run_once() override;
  void run() override;

  // -- called by scribes and doormen, loop thread
  // ---------------------------------------------------------
  /// Sends the scribe's write buffer at the end of this turn.
  void transmit_later(stream_scribe& scribe);
  /// The same from any thread, for what is in the connection's outbox.
  void transmit_soon(caf::io::connection_handle connection);
  /// The outbox of a connection; null when it has none (plain TCP) or is gone. Any thread.
  std::shared_ptr<outbox> outbox_of(caf::io::connection_handle connection);
  /// Runs what may take long, between two turns. Another thread takes the loop over if it does, so
  /// `job` may touch nothing of the loop; it gets a context of its own.
  void run_aside(std::function<void(caf::execution_unit&)> job) {
    aside_.push_back(std::move(job));
  }
  /// Bytes from which a run of them is worth a transfer of its own.
  size_t long_run() const noexcept { return settings_.channels.rendezvous_threshold; }
  /// Whether CAF gives up connections that it has not heard from.
  bool times_out() const noexcept { return times_out_; }
  /// Forgets a scribe whose channel is done; it may die at the end of the turn.
  void release(stream_scribe& scribe);
  void accept(stream_doorman& doorman, std::unique_ptr<connection_request> request);
  /// Any thread.
  void unlisten(std::unique_ptr<listener> which);

private:
  using scribe_handle = caf::intrusive_ptr<stream_scribe>;

  bool uses_rdma() const noexcept;
  bool on_loop() const noexcept;

  /// What a pass of the loop came to.
  enum class pass : uint8_t { idle, busy, lost }; // lost: another thread has the role now

  bool lead();
  void stand_by();
  void end();
  void keep_watched();
  pass turn();
  pass run_runnable();
  bool transmit();
  pass spin();
  pass sleep();
  void run_own(caf::resumable* ptr);
  bool run_handler(caf::resumable* ptr);
  bool run_next_aside();
  bool finished();
  void begin_to_stop();
  void watch_engine();
  void unwatch_engine();
  result<caf::io::scribe_ptr> connect_stream(const endpoint& numeric);
  void start_connecting(const endpoint& remote,
                        std::function<void(result<caf::io::scribe_ptr>)> done);
  scribe_handle new_stream_scribe();

  /// Runs `action` on the loop thread and waits for it. @returns false when the loop has ended.
  bool call_on_loop(std::function<void()> action);

  status ready_;
  std::unique_ptr<engine> engine_;
  std::unique_ptr<memory_service> memory_;
  settings settings_;
  size_t max_throughput_;
  bool times_out_;

  std::atomic<bool> probing_ = false;
  std::atomic<std::thread::id> rdma_thread_;

  loop_role role_;
  std::mutex threads_mutex_;
  std::vector<std::thread> threads_; // that have been added to the one that CAF started
  bool may_add_threads_ = true;
  handler_budget budget_{{}};
  spin_policy spinning_{{}};
  uint64_t handling_ = 0; // the actor whose handler runs

  mpsc_queue<caf::resumable*> posted_;    // from other threads and from handlers
  std::vector<caf::resumable*> runnable_; // from `next_runnable_` on
  size_t next_runnable_ = 0;
  std::deque<std::function<void(caf::execution_unit&)>> aside_;
  std::vector<std::unique_ptr<caf::io::network::event_handler>> watches_;
  size_t idle_handlers_ = 0; // descriptors in CAF's epoll that are always there

  std::unordered_map<caf::io::connection_handle, scribe_handle>
      scribes_; // with a channel that is not done
  std::mutex boxes_mutex_;
  std::unordered_map<caf::io::connection_handle, std::shared_ptr<outbox>> boxes_; // of scribes_
  mpsc_queue<caf::io::connection_handle> filled_; // connections whose outbox has something
  std::vector<caf::io::connection_handle> filled_now_;
  std::vector<scribe_handle> dirty_; // to be transmitted
  std::vector<scribe_handle> dirty_now_;
  std::vector<scribe_handle> dying_;
  int64_t last_handle_ = first_handle;

  bool stopping_ = false;
  engine::clock::time_point stop_deadline_;
  std::atomic<bool> ended_ = false;
};

} // namespace troupe::transport
