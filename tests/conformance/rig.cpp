#include "rig.hpp"

#include <algorithm>
#include <thread>
#include <troupe/transport/open_device.hpp>

namespace conformance {

using steady = std::chrono::steady_clock;

namespace {

subject chosen;

// Cheap, and different at every position and for every seed.
std::byte pattern(uint32_t seed, size_t position) {
  auto mixed = (static_cast<uint32_t>(position) + seed * 7919U) * 2654435761U;
  return static_cast<std::byte>(mixed >> 24);
}

} // namespace

const subject& under_test() {
  return chosen;
}

void choose_subject(const std::string& device) {
  chosen = {device, "127.0.0.1", {}};
  if (device.starts_with("soft"))
    return;
  chosen.unusable_reason = "no device " + device + " on this machine";
  for (const auto& candidate : list_devices()) {
    if (candidate.name != device)
      continue;
    chosen.address = candidate.address;
    chosen.unusable_reason = candidate.usable ? "" : device + ": " + candidate.detail;
  }
}

bool reports_late(const device_limits& limits) {
  return !limits.native_immediate;
}

side::side(uint32_t completion_depth) {
  auto choice = open_device(under_test().device);
  REQUIRE_MESSAGE(choice, choice.error().text());
  opened = std::move(choice->opened);
  auto queue = opened->create_completion_queue(completion_depth);
  REQUIRE_MESSAGE(queue, queue.error().text());
  completions = std::move(*queue);
}

bool side::turn() {
  completion batch[16];
  auto count = completions->poll(batch);
  done.insert(done.end(), batch, batch + count);
  bool any = count > 0;
  while (auto event = opened->next_event()) {
    events.push_back(std::move(*event));
    any = true;
  }
  return any;
}

std::optional<connection_event> side::take_event(connection_event::kind kind) {
  auto found = std::find_if(events.begin(), events.end(),
                            [kind](const connection_event& event) { return event.what == kind; });
  if (found == events.end())
    return std::nullopt;
  std::optional<connection_event> event{std::move(*found)};
  events.erase(found);
  return event;
}

bool turn_until(std::initializer_list<side*> sides, const std::function<bool()>& reached,
                std::chrono::milliseconds limit) {
  auto deadline = steady::now() + limit;
  int idle = 0;
  while (!reached()) {
    bool any = false;
    for (auto each : sides)
      any |= each->turn();
    idle = any ? 0 : idle + 1;
    // A peer in another process, or an emulated adapter, needs the processor too.
    if (idle > 200)
      std::this_thread::sleep_for(std::chrono::microseconds{200});
    if (idle > 0 && steady::now() > deadline)
      return reached();
  }
  return true;
}

void turn_for(std::initializer_list<side*> sides, std::chrono::milliseconds time) {
  turn_until(
      sides, [] { return false; }, time);
}

rig::rig(rig_config wanted) : config(wanted) {
  if (!config.connect)
    return;
  auto made = connect();
  client_pair = std::move(made.client);
  server_pair = std::move(made.server);
}

endpoint rig::listening() {
  if (!listening_at) {
    auto made = server.opened->listen({under_test().address, 0});
    REQUIRE_MESSAGE(made, made.error().text());
    listening_at = std::move(*made);
    REQUIRE(listening_at->local().port != 0);
  }
  return {under_test().address, listening_at->local().port};
}

rig::link rig::connect() {
  link made;
  queue_pair_config at_client{client.completions.get(), config.send_depth, config.receive_depth};
  queue_pair_config at_server{server.completions.get(), config.send_depth, config.receive_depth};
  auto connecting = client.opened->connect(listening(), at_client, {}, patience);
  REQUIRE_MESSAGE(connecting, connecting.error().text());
  made.client = std::move(*connecting);
  auto requested = next_event(server, connection_event::kind::requested);
  CHECK(requested.source == listening_at.get());
  REQUIRE(requested.request);
  auto accepted = requested.request->accept(at_server, {});
  REQUIRE_MESSAGE(accepted, accepted.error().text());
  made.server = std::move(*accepted);
  auto here = next_event(client, connection_event::kind::established);
  CHECK(here.pair == made.client.get());
  auto there = next_event(server, connection_event::kind::established);
  CHECK(there.pair == made.server.get());
  return made;
}

completion rig::next(side& where) {
  REQUIRE_MESSAGE(until([&] { return !where.done.empty(); }), "no completion in time");
  auto first = where.done.front();
  where.done.pop_front();
  return first;
}

connection_event rig::next_event(side& where, connection_event::kind kind) {
  std::optional<connection_event> found;
  bool in_time = until([&] {
    found = where.take_event(kind);
    return found.has_value();
  });
  if (!in_time && !where.events.empty())
    INFO("another event waits: ", where.events.front().reason.text());
  REQUIRE_MESSAGE(in_time, "no event of kind ", static_cast<int>(kind), " in time");
  return std::move(*found);
}

memory_region& rig::memory(side& where, size_t size, rights held) {
  auto made = where.opened->allocate(size, held);
  REQUIRE_MESSAGE(made, made.error().text());
  regions.push_back(std::move(*made));
  return *regions.back();
}

void fill(byte_span bytes, uint32_t seed) {
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = pattern(seed, i);
}

bool filled(byte_view bytes, uint32_t seed, size_t skip) {
  for (size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] != pattern(seed, i + skip))
      return false;
  return true;
}

bool untouched(byte_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

local_slice slice(const memory_region& region) {
  return {&region, 0, region.size()};
}

local_slice slice(const memory_region& region, size_t offset, size_t length) {
  return {&region, offset, length};
}

work_request send_request(uint64_t id, local_slice local) {
  work_request work;
  work.op = opcode::send;
  work.id = id;
  work.local = local;
  return work;
}

work_request write_request(uint64_t id, local_slice local, remote_address to) {
  work_request work;
  work.op = opcode::write;
  work.id = id;
  work.local = local;
  work.remote = to;
  return work;
}

work_request notify_request(uint64_t id, local_slice local, remote_address to, uint32_t immediate) {
  auto work = write_request(id, local, to);
  work.op = opcode::write_notify;
  work.immediate = immediate;
  return work;
}

work_request read_request(uint64_t id, local_slice local, remote_address from) {
  auto work = write_request(id, local, from);
  work.op = opcode::read;
  return work;
}

remote_address at(const memory_region& region, uint64_t offset) {
  auto remote = region.remote();
  return {remote.address + offset, remote.key};
}

} // namespace conformance
