#include "caf_rows.hpp"
#include "floor_rows.hpp"
#include "row.hpp"

namespace bench {

const std::vector<column>& columns() {
  static const std::vector<column> all = {
      {"troupe", "Troupe", "troupe::transport::middleman, CAF's default scheduler settings"},
      {"troupe_tuned", "Troupe tuned",
       "the same with scheduler.policy=sharing, scheduler.max-threads=1"},
      {"caf", "CAF", "caf::io::middleman over TCP, default settings"},
      {"caf_tuned", "CAF tuned", "the same with scheduler.policy=sharing, scheduler.max-threads=1"},
      {"floor", "floor",
       "no actors: a ring in shared memory, a futex to sleep on; payloads: one memcpy out of it"},
  };
  return all;
}

namespace {

/// The columns of CAF programs, each measured by `measure`.
std::vector<cell> caf_cells(std::function<sample(const context&)> measure) {
  std::vector<cell> out;
  for (auto name : {"troupe", "troupe_tuned", "caf", "caf_tuned"})
    out.push_back({name, measure});
  return out;
}

std::vector<cell> with(std::vector<cell> cells, cell more) {
  cells.push_back(std::move(more));
  return cells;
}

row payload_row(std::string name, std::string title, std::string goal, size_t bytes,
                size_t window) {
  return {.name = std::move(name),
          .title = std::move(title),
          .goal = std::move(goal),
          .more_is_better = true,
          .cells = with(caf_cells([=](const context& c) { return caf_payload(c, bytes, window); }),
                        {"floor", [=](const context& c) { return floor_payload(c, bytes); }})};
}

} // namespace

const std::vector<row>& rows() {
  static const std::vector<row> all = {
      {.name = "round-trip",
       .title = "round trip, 64 B",
       .goal = "at most 1/5 of tuned CAF",
       .cells = with(caf_cells([](const context& c) { return caf_round_trip(c); }),
                     {"floor", [](const context& c) { return floor_round_trip(c, false); }})},
      {.name = "one-way",
       .title = "one way, 64 B, at most 1000 unanswered",
       .goal = "at least 8 times CAF",
       .more_is_better = true,
       .cells = with(caf_cells([](const context& c) { return caf_one_way(c); }),
                     {"floor", [](const context& c) { return floor_one_way(c); }})},
      payload_row("64KiB", "vector<char> of 64 KiB, 8 at a time", "at least 5 times CAF",
                  size_t{64} << 10, 8),
      payload_row("1MiB", "vector<char> of 1 MiB, 4 at a time", "at least 5 times CAF",
                  size_t{1} << 20, 4),
      payload_row("16MiB", "vector<char> of 16 MiB, one at a time", "at least 6 times CAF",
                  size_t{16} << 20, 1),
      payload_row("256MiB", "vector<char> of 256 MiB, one at a time", "at least 10 times CAF",
                  size_t{256} << 20, 1),
  };
  return all;
}

const std::vector<role>& roles() {
  static const std::vector<role> all = {
      {"caf-echo", caf_serve_echo},
      {"caf-sink", caf_serve_sink},
      {"floor", floor_serve},
  };
  return all;
}

} // namespace bench
