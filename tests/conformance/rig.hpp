// Two devices of the kind under test in one process, connected, and both driven by the test.
#pragma once

#include <chrono>
#include <deque>
#include <doctest/doctest.h>
#include <functional>
#include <memory>
#include <string>
#include <troupe/transport/device.hpp>
#include <vector>

namespace conformance {

using namespace troupe;
using namespace troupe::transport;
/// Not `access`, which is a function of unistd.h too.
using rights = transport::access;

/// How long anything may take before the test fails: an emulated guest is 50 times slower.
constexpr std::chrono::seconds patience{60};

/// The device under test and an address that reaches it. Set once by main.
struct subject {
  std::string device;          ///< as `open_device` takes it
  std::string address;         ///< numeric
  std::string unusable_reason; ///< not empty: it is not there, or cannot be used
};
const subject& under_test();
void choose_subject(const std::string& device);

/// Whether the device may report a failed write as a broken connection only (iWARP).
bool reports_late(const device_limits& limits);

/// A device with one completion queue, and what came out of both so far.
class side {
public:
  explicit side(uint32_t completion_depth = 1024);

  /// Polls the device and its completion queue once.
  /// @returns whether anything came out.
  bool turn();

  /// Takes the oldest event of `kind`, if there is one.
  std::optional<connection_event> take_event(connection_event::kind kind);

  std::unique_ptr<device> opened;
  std::unique_ptr<completion_queue> completions;
  std::deque<completion> done;
  std::deque<connection_event> events;
};

/// Turns `sides` until `reached` says so.
/// @returns whether it did within `limit`.
bool turn_until(std::initializer_list<side*> sides, const std::function<bool()>& reached,
                std::chrono::milliseconds limit = patience);

/// Turns `sides` for `time` whatever happens: to see that something does not.
void turn_for(std::initializer_list<side*> sides, std::chrono::milliseconds time);

struct rig_config {
  uint32_t send_depth = 64;
  uint32_t receive_depth = 64;
  bool connect = true;
};

/// A client and a server, connected by one queue pair each unless asked otherwise.
class rig {
public:
  explicit rig(rig_config config = {});

  /// Listens at the server when it does not yet.
  endpoint listening();

  /// What a connection is made of on both sides.
  struct link {
    std::unique_ptr<queue_pair> client;
    std::unique_ptr<queue_pair> server;
  };

  /// Makes one more connection; fails the test when that does not work.
  link connect();

  bool until(const std::function<bool()>& reached) {
    return turn_until({&client, &server}, reached);
  }

  /// The next completion at `where`; fails the test when there is none in time.
  completion next(side& where);

  /// The next event of `kind` at `where`; fails the test when there is none in time.
  connection_event next_event(side& where, connection_event::kind kind);

  rig_config config;
  side client;
  side server;
  std::unique_ptr<listener> listening_at;
  // Above the pairs that name them, so that they outlive those.
  std::vector<std::unique_ptr<memory_region>> regions;
  std::unique_ptr<queue_pair> client_pair;
  std::unique_ptr<queue_pair> server_pair;

  /// Zeroed memory of `where`'s device, kept until the rig ends.
  memory_region& memory(side& where, size_t size, rights held = rights::read_sink);
};

/// Every right a region can have.
constexpr rights every_right =
    rights::remote_read | rights::remote_write | rights::remote_atomic | rights::read_sink;

/// Fills `bytes` with a pattern that `seed` tells apart from others.
void fill(byte_span bytes, uint32_t seed);

/// Whether `bytes` hold that pattern, with `skip` bytes of it left out in front.
bool filled(byte_view bytes, uint32_t seed, size_t skip = 0);

/// Whether every byte is zero.
bool untouched(byte_view bytes);

/// The whole of `region`, or a part of it.
local_slice slice(const memory_region& region);
local_slice slice(const memory_region& region, size_t offset, size_t length);

work_request send_request(uint64_t id, local_slice local);
work_request write_request(uint64_t id, local_slice local, remote_address to);
work_request notify_request(uint64_t id, local_slice local, remote_address to, uint32_t immediate);
work_request read_request(uint64_t id, local_slice local, remote_address from);

/// Where `region` is for a peer, `offset` bytes in.
remote_address at(const memory_region& region, uint64_t offset = 0);

} // namespace conformance
