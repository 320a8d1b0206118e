// Runs one task per argument after the spool directory (`sh -c ARGUMENT`, with this process's own
// environment) and holds on to them until it is killed; for HOLDER_LEASE_MS at a time, if that is
// set.

#include "troupe/actors/task_runner.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc < 2)
    return 2;
  auto runner = troupe::cluster::task_runner::create({argv[1], {}});
  if (!runner) {
    std::fprintf(stderr, "%s\n", runner.error().text().c_str());
    return 1;
  }
  if (auto text = std::getenv("HOLDER_LEASE_MS"))
    std::thread{[&held = **runner, length = std::chrono::milliseconds{std::atoi(text)}] {
      while (held.extend_lease(troupe::cluster::boot_clock::now() + length))
        std::this_thread::sleep_for(length / 10);
    }}.detach();
  troupe::cluster::task_launch launch;
  for (auto entry = environ; *entry; ++entry)
    launch.env.emplace_back(*entry);
  for (int i = 2; i < argc; ++i) {
    launch.id = static_cast<uint64_t>(i);
    launch.argv = {"sh", "-c", argv[i]};
    if (auto started = (*runner)->start(launch); !started) {
      std::fprintf(stderr, "%s\n", started.error().text().c_str());
      return 1;
    }
  }
  (*runner)->run_events([](troupe::cluster::task_event) {});
  ::_exit(0);
}
