// The monitor: reads every worker's state page by RDMA Read, at a steady pace. No message goes to a
// worker. Internal.
#pragma once

#include "controller/local_messages.hpp"

#include <caf/event_based_actor.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace troupe::cluster {

/// Tells the monitor where to send what it sees.
struct report_to {
  caf::actor whom;
};
/// Time to read all pages.
struct monitor_tick {};
/// A page as it was read.
struct page_read {
  incarnation_id node = 0;
  result<std::vector<std::byte>> bytes;
};

class monitor {
public:
  monitor(caf::event_based_actor* self, std::chrono::milliseconds interval)
      : self_(self), interval_(interval) {}

  caf::behavior make_behavior();

private:
  struct watched {
    std::string id;
    std::shared_ptr<worker_port> port;
    state_snapshot last;
    bool read_once = false;
    uint64_t reads = 0;
    uint64_t stale = 0; // reads in a row that found the epoch where it was
  };

  void read_all();
  void on_page(page_read& page);
  caf::result<std::string> command(const std::vector<std::string>& words) const;

  caf::event_based_actor* self_;
  std::chrono::milliseconds interval_;
  caf::actor reports_to_;
  std::map<incarnation_id, watched> workers_;
};

} // namespace troupe::cluster

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::cluster::report_to)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::cluster::monitor_tick)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::cluster::page_read)
