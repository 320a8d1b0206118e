// The MPI program of the bench table: bench_mpi echo|flood|payload BYTES AT_ONCE WARM_UP_MS
// MEASURED_MS LEAST_UNITS, run as two processes by mpirun. The first one prints a sample.
#include "measurement.hpp"
#include "sample.hpp"

#include <cstdio>
#include <cstdlib>
#include <mpi.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

constexpr int data_tag = 1;
constexpr int answer_tag = 2;
constexpr int end_tag = 3;

struct plan {
  std::string what;
  size_t bytes;
  size_t at_once;
  bench::effort how_long;

  bool echoes() const { return what == "echo"; }
  /// Messages per answer.
  uint64_t unit() const { return what == "flood" ? at_once / 4 : 1; }
};

void serve(const plan& p) {
  std::vector<char> bytes(p.bytes);
  for (uint64_t messages = 1;; ++messages) {
    MPI_Status how;
    MPI_Recv(bytes.data(), static_cast<int>(bytes.size()), MPI_CHAR, 0, MPI_ANY_TAG, MPI_COMM_WORLD,
             &how);
    if (how.MPI_TAG == end_tag)
      return;
    if (messages % p.unit() == 0)
      MPI_Send(bytes.data(), p.echoes() ? static_cast<int>(bytes.size()) : 8, MPI_CHAR, 0,
               answer_tag, MPI_COMM_WORLD);
  }
}

void measure(const plan& p, pid_t peer) {
  bench::measurement course{p.how_long, peer};
  std::vector<char> bytes(p.bytes, 'x');
  std::vector<char> answer(64);
  std::vector<MPI_Request> sends(p.at_once, MPI_REQUEST_NULL);
  size_t next = 0;
  auto send = [&](uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      auto& slot = sends[next++ % sends.size()];
      MPI_Wait(&slot, MPI_STATUS_IGNORE);
      MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_CHAR, 1, data_tag, MPI_COMM_WORLD,
                &slot);
    }
  };
  auto receive = [&] {
    MPI_Recv(answer.data(), static_cast<int>(answer.size()), MPI_CHAR, 1, answer_tag,
             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  };
  send(p.at_once - p.unit());
  do {
    send(p.unit());
    receive();
  } while (course.unit_done(p.unit()));
  for (auto under_way = p.at_once - p.unit(); under_way > 0; under_way -= p.unit())
    receive();
  MPI_Waitall(static_cast<int>(sends.size()), sends.data(), MPI_STATUSES_IGNORE);
  MPI_Send(bytes.data(), 1, MPI_CHAR, 1, end_tag, MPI_COMM_WORLD);
  bench::sample out;
  if (p.echoes())
    course.add_latency(out);
  else if (p.what == "flood")
    course.add_rate(out);
  else
    course.add_throughput(out, p.bytes);
  course.add_costs(out);
  std::puts(out.to_line().c_str());
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 7)
    return 2;
  const plan p{argv[1],
               std::stoul(argv[2]),
               std::stoul(argv[3]),
               {std::chrono::milliseconds{std::stol(argv[4])},
                std::chrono::milliseconds{std::stol(argv[5])}, std::stoul(argv[6])}};
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int process = ::getpid();
  if (rank == 0) {
    MPI_Recv(&process, 1, MPI_INT, 1, data_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    measure(p, process);
  } else {
    MPI_Send(&process, 1, MPI_INT, 0, data_tag, MPI_COMM_WORLD);
    serve(p);
  }
  MPI_Finalize();
  return 0;
}
