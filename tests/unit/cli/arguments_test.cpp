#include "arguments.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace troupe::cli;
using strings = std::vector<std::string>;

TEST_CASE("a range of indices is FIRST-LAST or one index") {
  CHECK(parse_index_range("1-60").value() == index_range{1, 60});
  CHECK(parse_index_range("0-0").value() == index_range{0, 0});
  CHECK(parse_index_range("7").value() == index_range{7, 7});
  CHECK(parse_index_range("18446744073709551615").value().last == UINT64_MAX);
  for (auto text :
       {"", "-", "1-", "-5", "a-b", "1-2-3", "1 -2", "+1-2", "18446744073709551616", "5-4"}) {
    CAPTURE(text);
    auto range = parse_index_range(text);
    REQUIRE_FALSE(range);
    CHECK(range.error().code() == errc::invalid_argument);
    CHECK(range.error().text().find("'" + std::string{text} + "'") != std::string::npos);
  }
}

TEST_CASE("a number has only digits") {
  CHECK(parse_number("12", "a job id").value() == 12);
  for (auto text : {"", "-1", "12x", " 12", "0x10", "1e3", "99999999999999999999"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_number(text, "a job id"));
  }
  CHECK(parse_number("x", "a job id").error().text() == "'x' is not a job id: want a number");
}

TEST_CASE("the environment of a task is the caller's with changes") {
  strings base{"PATH=/bin", "LANG=C", "broken", "=odd", "EMPTY="};
  CHECK(task_environment(base, {}, base).value() == strings{"PATH=/bin", "LANG=C", "EMPTY="});

  strings changes{"LANG=de_DE", "NEW=a=b", "PATH=", "NEW=c"};
  CHECK(task_environment(base, changes, base).value() ==
        strings{"PATH=", "LANG=de_DE", "EMPTY=", "NEW=c"});

  SUBCASE("a name alone takes the caller's value") {
    CHECK(task_environment({}, strings{"LANG", "X=1"}, base).value() == strings{"LANG=C", "X=1"});
    auto missing = task_environment({}, strings{"LAN"}, base);
    REQUIRE_FALSE(missing);
    CHECK(missing.error().code() == errc::not_found);
    CHECK(missing.error().text().find("'LAN'") != std::string::npos);
  }
  SUBCASE("a variable has a name") {
    CHECK(task_environment({}, strings{"=x"}, base).error().code() == errc::invalid_argument);
    CHECK(task_environment({}, strings{""}, base).error().code() == errc::invalid_argument);
  }
}

TEST_CASE("a variable is found by its whole name") {
  strings environment{"AB=1", "A=2", "B=", "C"};
  CHECK(find_variable(environment, "A") == std::string{"2"});
  CHECK(find_variable(environment, "B") == std::string{""});
  CHECK(find_variable(environment, "C") == nullptr);
  CHECK(find_variable(environment, "") == nullptr);
}

TEST_CASE("a job without a name is called like its command") {
  CHECK(default_job_name("/usr/bin/sort") == "sort");
  CHECK(default_job_name("sort") == "sort");
  CHECK(default_job_name("./run/") == "run");
  CHECK(default_job_name("/") == "/");
}
