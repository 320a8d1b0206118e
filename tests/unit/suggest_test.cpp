#include <doctest/doctest.h>
#include <string>
#include <troupe/framework/suggest.hpp>
#include <vector>

using namespace troupe;

TEST_CASE("the distance counts single typing mistakes") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("abc", "") == 3);
  CHECK(edit_distance("worker.cpu", "worker.cpus") == 1);
  CHECK(edit_distance("Submit", "submit") == 0);
  CHECK(edit_distance("sumbit", "submit") == 1);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("ca", "abc") == 3);
}

TEST_CASE("only a near name is suggested") {
  const std::vector<std::string> names{"nodes", "submit", "jobs", "job", "wait", "output"};
  CHECK(nearest("submitt", names) == "submit");
  CHECK(nearest("node", names) == "nodes");
  CHECK(nearest("jobz", names) == "jobs");
  CHECK(nearest("xylophone", names).empty());
  CHECK(nearest("", names).empty());
  CHECK(nearest("x", names).empty());
  CHECK(nearest(std::string(100'000, 'j'), names).empty());
  CHECK(nearest("wait", {}).empty());
  CHECK(did_you_mean("ouput", names) == "; did you mean 'output'?");
  CHECK(did_you_mean("zzz", names).empty());
}
