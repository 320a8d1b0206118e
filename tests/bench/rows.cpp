#include "row.hpp"

#include "caf_rows.hpp"
#include "floor_rows.hpp"
#include "mpi_rows.hpp"
#include "ucx_rows.hpp"
#include "verbs_rows.hpp"
#include "zeromq_rows.hpp"

#include <algorithm>

namespace bench {

namespace {

std::string absent_unless(bool present, const char* packages) {
  return present ? "" : std::string{"not installed; Debian packages: "} + packages;
}

} // namespace

std::vector<column> columns(const context& c) {
  const std::string on_soft = c.device == "soft" ? "the device is soft already" : "";
  return {
      {"troupe", "Troupe",
       "troupe::transport::middleman on " + c.device + ", CAF's default scheduler settings", ""},
      {"troupe_tuned", "Troupe tuned",
       "the same with scheduler.policy=sharing, scheduler.max-threads=1", ""},
      {"troupe_soft", "Troupe soft", "as Troupe, but on the soft device", on_soft},
      {"caf", "CAF", "caf::io::middleman over TCP, default settings", ""},
      {"caf_tuned", "CAF tuned", "the same with scheduler.policy=sharing, scheduler.max-threads=1",
       ""},
      {"floor", "floor",
       "no actors: a ring in shared memory, a futex to sleep on; payloads: one memcpy out of it",
       ""},
      {"verbs", "verbs", "the device alone: ib_send_lat, sleeping or spinning; ib_read_bw",
       verbs_absent(c)},
      {"zeromq", "ZeroMQ", "PAIR sockets over ipc",
       absent_unless(zeromq_present(), "libzmq3-dev, then build anew")},
      {"ucx", "UCX", "ucx_perftest, tag messages; spins, except in the first row",
       absent_unless(ucx_present(), "ucx-utils")},
      {"mpi", "OpenMPI", "MPI_Isend and MPI_Recv; always spins",
       absent_unless(mpi_present(), "libopenmpi-dev openmpi-bin, then build anew")},
  };
}

namespace {

/// The columns of CAF programs, each measured by `measure`, and others.
std::vector<cell> caf_and(const std::function<sample(const context&)>& measure,
                          const std::vector<cell>& others) {
  std::vector<cell> out;
  for (auto name : {"troupe", "troupe_tuned", "troupe_soft", "caf", "caf_tuned"})
    out.push_back({name, measure});
  out.insert(out.end(), others.begin(), others.end());
  return out;
}

sample spinning_round_trip(const context& c) {
  auto how = c;
  how.spinning = true;
  return caf_round_trip(how);
}

row payload_row(std::string name, std::string title, std::string goal, size_t bytes,
                size_t at_once) {
  auto size = [=](const context& c) { return c.quick ? std::min(bytes, size_t{4} << 20) : bytes; };
  auto caf = [=](const context& c) { return caf_payload(c, size(c), at_once); };
  auto floor = [=](const context& c) { return floor_payload(c, size(c)); };
  auto zeromq = [=](const context& c) { return zeromq_payload(c, size(c), at_once); };
  auto ucx = [=](const context& c) { return ucx_payload(c, size(c)); };
  auto verbs = [=](const context& c) { return verbs_payload(c, size(c)); };
  auto mpi = [=](const context& c) { return mpi_payload(c, size(c), at_once); };
  return {
      .name = std::move(name),
      .title = std::move(title),
      .goal = std::move(goal),
      .more_is_better = true,
      .cells = caf_and(
          caf,
          {{"floor", floor}, {"verbs", verbs}, {"zeromq", zeromq}, {"ucx", ucx}, {"mpi", mpi}})};
}

std::vector<row> make_rows() {
  return {
      {.name = "round-trip",
       .title = "round trip, 64 B",
       .goal = "at most 1/5 of tuned CAF",
       .cells = caf_and(caf_round_trip,
                        {{"floor", [](const context& c) { return floor_round_trip(c, false); }},
                         {"verbs", [](const context& c) { return verbs_round_trip(c, false); }},
                         {"zeromq", zeromq_round_trip},
                         {"ucx", [](const context& c) { return ucx_round_trip(c, false); }}})},
      {.name = "round-trip-spinning",
       .title = "round trip, 64 B, spinning allowed",
       .goal = "at most 1/20 of tuned CAF",
       .cells = caf_and(spinning_round_trip,
                        {{"floor", [](const context& c) { return floor_round_trip(c, true); }},
                         {"verbs", [](const context& c) { return verbs_round_trip(c, true); }},
                         {"ucx", [](const context& c) { return ucx_round_trip(c, true); }},
                         {"mpi", mpi_round_trip}})},
      {.name = "one-way",
       .title = "one way, 64 B, at most 1000 unanswered",
       .goal = "at least 8 times CAF",
       .more_is_better = true,
       .cells = caf_and(caf_one_way, {{"floor", floor_one_way},
                                      {"zeromq", zeromq_one_way},
                                      {"ucx", ucx_one_way},
                                      {"mpi", mpi_one_way}})},
      payload_row("64KiB", "vector<char> of 64 KiB, 8 at a time", "at least 5 times CAF",
                  size_t{64} << 10, 8),
      payload_row("1MiB", "vector<char> of 1 MiB, 4 at a time", "at least 5 times CAF",
                  size_t{1} << 20, 4),
      payload_row("8MiB", "vector<char> of 8 MiB, one at a time", "within 10 % of ib_read_bw",
                  size_t{8} << 20, 1),
      payload_row("16MiB", "vector<char> of 16 MiB, one at a time", "at least 6 times CAF",
                  size_t{16} << 20, 1),
      payload_row("256MiB", "vector<char> of 256 MiB, one at a time", "at least 10 times CAF",
                  size_t{256} << 20, 1),
      {.name = "peak-memory",
       .title = "memory of one message of 256 MiB, above idle",
       .goal = "receiver at most 1.1 payloads; sender 2.1, with the payload itself and CAF's copy",
       .cells = caf_and(caf_peak_memory, {})},
      {.name = "5GiB",
       .title = "one message of 5 GiB",
       .goal = "arrives, or an error that names its size, at once",
       .cells = caf_and(caf_beyond_4_gib, {}),
       .patience = std::chrono::seconds{240}},
      {.name = "idle-peers",
       .title = "round trip, 64 B, beside 63 idle peers",
       .goal = "cost per message does not grow: 1.0",
       .cells = caf_and(caf_idle_peers, {})},
      {.name = "paced",
       .title = "10,000 messages of 64 B a second",
       .goal = "below CAF",
       .cells = caf_and(caf_paced, {})},
      {.name = "idle",
       .title = "two connected nodes without work",
       .goal = "no measurable processor time",
       .cells = caf_and(caf_idle_node, {})},
      {.name = "connect",
       .title = "connection set-up: remote_actor",
       .goal = "",
       .cells = caf_and(caf_connect, {})},
  };
}

} // namespace

const std::vector<row>& rows() {
  static const auto all = make_rows();
  return all;
}

const std::vector<role>& roles() {
  static const std::vector<role> all = {
      {"caf-echo", caf_serve_echo},
      {"caf-sink", caf_serve_sink},
      {"caf-measurer", caf_serve_measurer},
      {"caf-idler", caf_serve_idler},
      {"floor", floor_serve},
      {"zeromq", zeromq_serve},
  };
  return all;
}

} // namespace bench
