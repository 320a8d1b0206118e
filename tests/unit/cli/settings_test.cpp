#include "settings.hpp"

#include <cstdlib>
#include <doctest/doctest.h>
#include <fstream>
#include <unistd.h>

using namespace troupe::cli;
using strings = std::vector<std::string>;

namespace {

/// A configuration file that is gone afterwards.
struct file_with {
  explicit file_with(const std::string& text) {
    path =
        std::filesystem::temp_directory_path() / ("troupe-cli-test-" + std::to_string(::getpid()));
    std::ofstream{path} << text;
  }
  ~file_with() { std::filesystem::remove(path); }

  std::filesystem::path path;
};

} // namespace

TEST_CASE("the controller is the option's, then the environment's, then the file's") {
  file_with file{"[client]\ncontroller = \"file:1\"\n"};
  connection_options options;
  options.config = file.path;
  strings environment{"TROUPE_CONTROLLER=env:2"};

  auto found = find_controller(options, {});
  REQUIRE(found);
  CHECK(to_string(found->where) == "file:1");
  CHECK(found->origin.find(":2") != std::string::npos); // the line

  found = find_controller(options, environment);
  REQUIRE(found);
  CHECK(to_string(found->where) == "env:2");
  CHECK(found->origin == "TROUPE_CONTROLLER");

  options.controller = "option";
  found = find_controller(options, environment);
  REQUIRE(found);
  CHECK(to_string(found->where) == "option:4747");
  CHECK(found->origin == "--controller");
}

TEST_CASE("without a word of it the controller is on this machine") {
  file_with file{""};
  connection_options options;
  options.config = file.path;
  auto found = find_controller(options, strings{"TROUPE_CONTROLLER="});
  REQUIRE(found);
  CHECK(to_string(found->where) == "127.0.0.1:4747");
  CHECK(found->origin == "the default");
}

TEST_CASE("an address or a file that is wrong is an error that names it") {
  file_with file{"[client]\ncontroler = \"x:1\"\n"};
  connection_options options;
  options.config = file.path;
  auto found = find_controller(options, {});
  REQUIRE_FALSE(found);
  CHECK(found.error().text().find("controller") != std::string::npos);

  options.config = "/nonexistent/troupe.toml";
  CHECK_FALSE(find_controller(options, {}));

  options.config.reset();
  options.controller = "host:port";
  found = find_controller(options, {});
  REQUIRE_FALSE(found);
  CHECK(found.error().text().find("--controller") != std::string::npos);
}

TEST_CASE("the key file is the option's, then the environment's, then the file's") {
  file_with file{"[cluster]\nkey_file = \"/from/file\"\n"};
  connection_options options;
  options.config = file.path;
  strings environment{"TROUPE_KEY_FILE=/from/environment"};
  CHECK(find_key_file(options, {}).value() == "/from/file");
  CHECK(find_key_file(options, strings{"TROUPE_KEY_FILE="}).value() == "/from/file");
  CHECK(find_key_file(options, environment).value() == "/from/environment");
  options.key_file = "/from/option";
  CHECK(find_key_file(options, environment).value() == "/from/option");
}

TEST_CASE("without a word of it there is no key") {
  file_with file{""};
  connection_options options;
  options.config = file.path;
  CHECK(find_key_file(options, {}).value().empty());
  options.config = "/nonexistent/troupe.toml";
  CHECK_FALSE(find_key_file(options, {}));
}

TEST_CASE("the device is the option's, then the environment's, then the best") {
  connection_options options;
  CHECK(find_device(options, {}) == "auto");
  CHECK(find_device(options, strings{"TROUPE_DEVICE="}) == "auto");
  CHECK(find_device(options, strings{"TROUPE_DEVICE=soft"}) == "soft");
  options.device = "verbs:rxe0";
  CHECK(find_device(options, strings{"TROUPE_DEVICE=soft"}) == "verbs:rxe0");
}
