// Messages between the controller's own actors. They never leave the process. Internal.
#pragma once

#include "controller/worker_port.hpp"
#include "troupe/actors/messages.hpp"
#include "troupe/actors/resource_book.hpp"
#include "troupe/actors/scheduler_state.hpp"
#include "troupe/actors/state_page.hpp"
#include "troupe/framework/node_info.hpp"

#include <caf/actor.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace troupe::cluster {

/// A worker is connected: it may be given tasks, and its state page be read.
struct worker_added {
  incarnation_id node = 0;
  std::string id;
  node_capacity capacity;
  std::shared_ptr<worker_port> port;
  caf::actor handle;
};

/// A worker died or left: nothing that it says from now on counts.
struct worker_removed {
  incarnation_id node = 0;
  departure how = departure::died;
  std::string reason; ///< of a death
};

/// Whether a worker gets new tasks.
struct worker_accepting {
  incarnation_id node = 0;
  bool accepting = true;
};

/// A worker has written the record of a task's end.
struct slot_finished {
  incarnation_id node = 0;
  uint32_t slot = 0;
  std::vector<std::byte> record;
};

/// A part of a long output has been read from a worker.
struct output_part {
  uint64_t transfer = 0;
  bool standard_error = false;
  result<std::vector<std::byte>> bytes;
};

/// A worker's state page was read. `fresh`: its epoch has advanced since the last time.
struct state_seen {
  incarnation_id node = 0;
  bool fresh = false;
  state_snapshot state;
};

/// Asks the scheduler for the resource books. Answer: `books`.
struct books_request {};

struct node_books {
  node_account account;
  uint32_t running = 0; ///< tasks
};

struct books {
  std::map<incarnation_id, node_books> nodes;
};

} // namespace troupe::cluster

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::cluster::worker_added)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::cluster::worker_removed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::cluster::worker_accepting)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::cluster::slot_finished)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::cluster::output_part)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::cluster::state_seen)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::cluster::books_request)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::cluster::books)
