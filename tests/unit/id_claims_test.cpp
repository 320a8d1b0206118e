#include <doctest/doctest.h>
#include <string>
#include <troupe/actors/id_claims.hpp>

using troupe::cluster::id_claims;
using names = std::vector<std::string>;

TEST_CASE("a claim is refuted by two signs of life of the holder") {
  id_claims<std::string> claims;
  CHECK(claims.heard(1).empty());
  claims.add(1, "first");
  claims.add(2, "other");
  CHECK(claims.heard(1).empty());
  claims.add(1, "second");
  CHECK(claims.heard(3).empty());
  CHECK(claims.heard(1) == names{"first"});
  CHECK(claims.heard(1) == names{"second"});
  CHECK(claims.heard(1).empty());
  CHECK(claims.gone(2) == names{"other"});
}

TEST_CASE("claims come up when the holder is gone, in their order") {
  id_claims<std::string> claims;
  for (auto name : {"a", "b", "c"})
    claims.add(7, name);
  claims.add(8, "d");
  claims.heard(7);
  claims.drop([](const std::string& name) { return name == "b"; });
  CHECK(claims.gone(7) == names{"a", "c"});
  CHECK(claims.gone(7).empty());
  CHECK(claims.gone(8) == names{"d"});
}
