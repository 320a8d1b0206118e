#include <doctest/doctest.h>
#include <random>
#include <troupe/actors/resource_book.hpp>
#include <vector>

using namespace troupe;
using namespace troupe::cluster;

TEST_CASE("what is granted is missing until it is released") {
  resource_book book;
  REQUIRE(book.add_node(1, {4, 1000}));
  auto first = book.grant(1, {3, 400});
  REQUIRE(first);
  CHECK(book.find(1)->free == resource_amount{1, 600});
  CHECK(book.find(1)->granted == resource_amount{3, 400});
  CHECK(book.find(1)->grants == 1);

  auto too_much = book.grant(1, {2, 0});
  REQUIRE_FALSE(too_much);
  CHECK(too_much.error().code() == errc::no_resources);
  CHECK(book.grant(1, {0, 601}).error().code() == errc::no_resources);
  CHECK(book.grant(2, {1, 0}).error().code() == errc::not_found);

  CHECK(book.release(*first));
  CHECK_FALSE(book.release(*first));
  CHECK_FALSE(book.release(999));
  CHECK(book.find(1)->free == resource_amount{4, 1000});
  CHECK(book.balanced());
}

TEST_CASE("a node's grants end with it") {
  resource_book book;
  REQUIRE(book.add_node(1, {4, 1000}));
  REQUIRE(book.add_node(2, {2, 500}));
  CHECK(book.add_node(1, {8, 8}).error().code() == errc::already_exists);
  auto on_first = book.grant(1, {1, 1});
  auto on_second = book.grant(2, {1, 1});
  auto page = book.remove_node(1);
  REQUIRE(page);
  CHECK(page->granted == resource_amount{1, 1});
  CHECK_FALSE(book.remove_node(1));
  CHECK_FALSE(book.find(1));
  CHECK_FALSE(book.release(*on_first));
  CHECK(book.balanced());

  // The same node again begins with everything free, and an old grant means nothing to it.
  REQUIRE(book.add_node(1, {4, 1000}));
  CHECK_FALSE(book.release(*on_first));
  CHECK(book.find(1)->free == resource_amount{4, 1000});
  CHECK(book.release(*on_second));
  CHECK(book.balanced());
}

TEST_CASE("the books balance at every point of any history") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random{seed};
    auto draw = [&](size_t bound) { return static_cast<uint32_t>(random() % bound); };
    resource_book book;
    std::vector<grant_id> grants;
    size_t refused = 0;
    for (int step = 0; step < 500; ++step) {
      incarnation_id node = draw(5) + 1;
      switch (draw(8)) {
      case 0:
        (void)book.add_node(node, {draw(16), draw(100'000)});
        break;
      case 1:
        if (draw(4) == 0)
          book.remove_node(node);
        break;
      case 2:
      case 3:
        if (!grants.empty())
          book.release(grants[draw(grants.size())]);
        break;
      default:
        if (auto grant = book.grant(node, {draw(8), draw(30'000)}))
          grants.push_back(*grant);
        else
          ++refused;
      }
      REQUIRE(book.balanced());
      for (auto& [_, page] : book.nodes()) {
        CHECK(page.free.cpus + page.granted.cpus == page.total.cpus);
        CHECK(page.free.memory + page.granted.memory == page.total.memory);
      }
    }
    CHECK_FALSE(grants.empty());
    CHECK(refused > 0);
  }
}
