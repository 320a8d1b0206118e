// OpenMPI: `bench_mpi` of this folder, where it could be built, started by `mpirun`.
#pragma once

#include "row.hpp"

namespace bench {

bool mpi_present();

sample mpi_round_trip(const context& c);
sample mpi_one_way(const context& c);
sample mpi_payload(const context& c, size_t bytes, size_t at_once);

} // namespace bench
