// What everything of one device shares: its epoll, its timer, its events, its memory.
#pragma once

#include "soft/descriptor.hpp"
#include "soft/region_table.hpp"
#include "soft/watcher.hpp"
#include "troupe/transport/device.hpp"

#include <deque>
#include <map>
#include <memory>

namespace troupe::transport::soft {

/// One thread, except for `regions`.
class context {
public:
  static result<std::shared_ptr<context>> make(std::shared_ptr<region_table> regions);

  context(std::shared_ptr<region_table> regions, descriptor epoll, descriptor timer,
          descriptor signal);
  ~context();

  region_table& regions() noexcept { return *regions_; }
  const std::shared_ptr<region_table>& shared_regions() noexcept { return regions_; }
  int fd() const noexcept { return epoll_.get(); }

  // -- descriptors ------------------------------------------------------------------------------

  status watch(int descriptor, uint32_t events, watcher& who);
  void change(int descriptor, uint32_t events, watcher& who);
  void forget(int descriptor);

  // -- deadlines --------------------------------------------------------------------------------

  /// Must be called when `who.deadline()` has begun to give a moment.
  void await_deadline(watcher& who);
  void forget_deadline(watcher& who);

  // -- owned set-ups ----------------------------------------------------------------------------

  /// Keeps `who` until `release` or the end of the context.
  void keep(std::unique_ptr<watcher> who);
  /// Destroys it, if it is kept here.
  void release(watcher& who);

  // -- events -----------------------------------------------------------------------------------

  void push(connection_event event);
  /// Drops the events that wait for a pair or a listener.
  void drop_events_of(const queue_pair* pair);
  void drop_events_of(const listener* source);

  std::optional<connection_event> next_event();

  /// Ends everything that is under way: called when the device goes, since set-ups and requests
  /// that nobody took keep this object alive.
  void close();

  /// When it was closed, if it was.
  std::optional<steady_clock::time_point> closed_at() const noexcept { return closed_at_; }

private:
  // Hands what epoll and the timer report to the watchers.
  void dispatch();
  void expire();
  // Makes fd() readable.
  void signal();
  void set_timer(std::optional<steady_clock::time_point> earliest);

  std::shared_ptr<region_table> regions_;
  descriptor epoll_;
  descriptor timer_;
  descriptor signal_; // readable while events_ holds something that next_event did not find itself
  bool signalled_ = false;
  bool dispatching_ = false;
  std::optional<steady_clock::time_point> timer_at_;
  std::optional<steady_clock::time_point> closed_at_;
  std::map<int, watcher*> watchers_; // by descriptor
  std::vector<watcher*> waiting_;    // for a deadline
  std::deque<connection_event> events_;
  std::map<watcher*, std::unique_ptr<watcher>> kept_;
};

} // namespace troupe::transport::soft
