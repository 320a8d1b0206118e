#include "caf_rows.hpp"
#include "caf_system.hpp"

#include <caf/all.hpp>
#include <fstream>
#include <memory>
#include <string>
#include <unistd.h>

namespace bench {

namespace {

caf::behavior measurer(caf::event_based_actor*) {
  return {[](const std::vector<char>& bytes) { return static_cast<uint64_t>(bytes.size()); }};
}

struct answer {
  bool arrived = false;
  std::string error; ///< empty when there was no answer at all
  double seconds = 0;
};

/// Sends one message of `bytes` and waits for the peer to tell its size.
answer send_one(caf_client& client, size_t bytes, std::chrono::seconds patience) {
  auto& system = client.system();
  std::vector<char> payload(bytes, 'x');
  answer out;
  caf::scoped_actor self{system};
  self->monitor(client.server());
  auto began = measurement::clock::now();
  self->send(client.server(), std::move(payload));
  self->receive(
      [&](uint64_t size) {
        out.arrived = size == bytes;
        if (!out.arrived)
          out.error = "only " + std::to_string(size) + " bytes arrived";
      },
      [&](const caf::error& why) { out.error = system.render(why); },
      [&](const caf::down_msg& down) {
        out.error = "the peer was lost: " + system.render(down.reason);
      },
      caf::after(patience) >> [] {});
  out.seconds = std::chrono::duration<double>(measurement::clock::now() - began).count();
  return out;
}

uint64_t available_memory() {
  std::ifstream in{"/proc/meminfo"};
  const std::string wanted = "MemAvailable:";
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(wanted))
      return std::stoull(line.substr(wanted.size())) << 10;
  return 0;
}

} // namespace

int caf_serve_measurer(const context& c, const std::vector<std::string>&) {
  caf_config config{c};
  caf::actor_system system{config};
  return serve_actor(c, system, system.spawn(measurer));
}

sample caf_peak_memory(const context& c) {
  const auto bytes = size_t{c.quick ? 8u : 256u} << 20;
  caf_client client{c, "caf-measurer"};
  memory_growth ours{::getpid()};
  memory_growth theirs{client.peer()};
  auto got = send_one(client, bytes, std::chrono::seconds{60});
  if (!got.arrived)
    return sample::failed(got.error.empty() ? "no answer" : got.error);
  auto payloads = [&](uint64_t grown) {
    return static_cast<double>(grown) / static_cast<double>(bytes);
  };
  sample out;
  out.set("receiver's peak, payloads", payloads(theirs.bytes()));
  out.set("sender's peak, payloads", payloads(ours.bytes()));
  return out;
}

sample caf_beyond_4_gib(const context& c) {
  const auto bytes = c.quick ? size_t{8} << 20 : size_t{5} << 30;
  // Both sides hold it serialized, and either the sender or the receiver as a vector, too.
  const auto needed = 3 * bytes + (uint64_t{1} << 30);
  if (auto have = available_memory(); !c.quick && have < needed)
    return sample::skip("needs " + std::to_string(needed >> 30) +
                        " GiB of free memory, there are " + std::to_string(have >> 30));
  auto client = std::make_unique<caf_client>(c, "caf-measurer");
  const std::chrono::seconds patience{120};
  auto got = send_one(*client, bytes, patience);
  if (!got.arrived)
    static_cast<void>(client.release()); // a system in that state may never end; the process does
  if (!got.arrived && got.error.empty())
    return sample::failed("silent for " + std::to_string(patience.count()) + " s");
  // An error helps only if it says what is too large.
  if (!got.arrived && got.error.find(std::to_string(bytes)) == std::string::npos)
    return sample::failed("an error that does not name the size: " + got.error);
  sample out;
  out.set("seconds until it arrived or failed", got.seconds);
  if (!got.arrived)
    out.remark = "error: " + got.error;
  else
    out.remark = "arrived whole";
  return out;
}

} // namespace bench
