// Actor systems on the device under test, and the server process that the tests talk to.
#pragma once

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/typed_actor.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace caf_backend {

/// The device under test and the address that reaches it; set once by main.
struct subject {
  std::string device;
  std::string address;
};
subject& under_test();

/// A plain CAF configuration with the one line that makes it Troupe's.
struct config : caf::actor_system_config {
  config();
};

using adder = caf::typed_actor<caf::replies_to<int, int>::with<int>>;

/// A number that hardly any other bytes have.
uint64_t checksum(const std::vector<char>& bytes);

/// An actor that adds, echoes bytes, counts, and ends when told.
///   (int, int) -> int           their sum
///   (std::vector<char>) -> same
///   (std::vector<char>, bool) -> uint64_t: their checksum
///   (std::vector<char>, std::string, uint64_t) -> same
///   (std::string "count") -> uint64_t: how many (uint64_t) it got, in order; they are numbered
///   from 0 (std::string "quit") -> ends with exit_reason::user_shutdown (std::string "exit") ->
///   the whole process ends
caf::behavior helper(caf::event_based_actor* self);

/// Publishes a helper, at `port` or any, and an adder, prints their ports, and serves until the
/// helper is told to quit.
int serve(uint16_t port);

} // namespace caf_backend
