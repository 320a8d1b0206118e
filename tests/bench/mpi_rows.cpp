#include "mpi_rows.hpp"

#include "external.hpp"

#include <filesystem>
#include <stdexcept>

namespace bench {

namespace {

std::string program() {
  return std::filesystem::path{this_program()}.replace_filename("bench_mpi").string();
}

/// Runs two processes of bench_mpi; the first one measures and prints the sample.
sample run(const context& c, const std::string& what, size_t bytes, size_t at_once) {
  auto milliseconds = [](std::chrono::nanoseconds t) {
    return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(t).count());
  };
  auto how_long = c.usual();
  child mpirun{{"mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", program(), what,
                std::to_string(bytes), std::to_string(at_once), milliseconds(how_long.warm_up),
                milliseconds(how_long.measured), std::to_string(how_long.least_units)},
               -1,
               true};
  std::string output;
  auto end = mpirun.finish(std::chrono::seconds{60}, output);
  if (end.timed_out || end.status != 0)
    throw std::runtime_error{"mpirun: " + end.text()};
  return sample::from_line(output);
}

} // namespace

bool mpi_present() {
  return in_path("mpirun") && std::filesystem::exists(program());
}

sample mpi_round_trip(const context& c) {
  return run(c, "echo", 64, 1);
}

sample mpi_one_way(const context& c) {
  return run(c, "flood", 64, 1000);
}

sample mpi_payload(const context& c, size_t bytes, size_t at_once) {
  return run(c, "payload", bytes, at_once);
}

} // namespace bench
