#include <doctest/doctest.h>
#include <troupe/actors/task_lease.hpp>

using namespace troupe::cluster;
using namespace std::chrono_literals;

namespace {

constexpr boot_clock::time_point start{100h};

} // namespace

TEST_CASE("a lease counts from the time at which an epoch was published") {
  task_lease lease{2s, start};
  CHECK(lease.end() == start + 2s);
  for (uint64_t epoch = 1; epoch <= 5; ++epoch)
    lease.publish(epoch, start + epoch * 500ms);
  CHECK(lease.seen(1) == start + 2500ms);
  CHECK(lease.end() == start + 2500ms);
  CHECK(lease.seen(4) == start + 4s);

  SUBCASE("what was seen before changes nothing") {
    CHECK_FALSE(lease.seen(4));
    CHECK_FALSE(lease.seen(3));
    CHECK_FALSE(lease.seen(0));
    CHECK(lease.end() == start + 4s);
  }
  SUBCASE("what was never published changes nothing") {
    CHECK_FALSE(lease.seen(6));
    CHECK_FALSE(lease.seen(UINT64_MAX));
    CHECK(lease.seen(5) == start + 4500ms);
  }
}

TEST_CASE("a lease without renewal remembers what matters") {
  task_lease lease{1s, start};
  for (uint64_t epoch = 1; epoch <= 100'000; ++epoch)
    lease.publish(epoch, start + epoch * 1ms);
  CHECK_FALSE(lease.seen(1));
  CHECK(lease.seen(99'999) == start + 100'999ms);
  CHECK(lease.seen(100'000) == start + 101s);
}
