#include "program.hpp"

#include <cstdlib>
#include <doctest/doctest.h>
#include <unistd.h>

namespace cli_test {

namespace {

struct scratch_directory {
  scratch_directory() {
    auto name = (std::filesystem::temp_directory_path() / "troupe-cli-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~scratch_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::filesystem::path path;
};

support::launch troupe_with(const std::vector<std::string>& words, const setting& with) {
  support::launch how;
  how.argv = {TROUPE_PROGRAM};
  how.argv.insert(how.argv.end(), words.begin(), words.end());
  how.environment = surroundings(with.environment);
  how.directory = with.directory;
  how.input = with.input;
  how.output = with.output;
  return how;
}

} // namespace

const std::filesystem::path& scratch() {
  static const scratch_directory directory;
  return directory.path;
}

std::vector<std::string> surroundings(const std::vector<std::string>& more) {
  std::vector<std::string> entries;
  for (auto entry = ::environ; *entry; ++entry) {
    std::string text{*entry};
    auto guides = text.starts_with("TROUPE_") || text.starts_with("XDG_") ||
                  text.starts_with("HOME=") || text.starts_with("TERM=") ||
                  text.starts_with("NO_COLOR=");
    if (!guides)
      entries.push_back(std::move(text));
  }
  entries.push_back("HOME=" + scratch().string());
  entries.emplace_back("TERM=xterm");
  entries.insert(entries.end(), more.begin(), more.end());
  return entries;
}

program::program(const std::vector<std::string>& words, const setting& with)
    : child_process(troupe_with(words, with)) {}

void program::await_err(const std::string& text) const {
  support::await("it says " + text, [&] { return err().find(text) != std::string::npos; });
}

ending troupe(const std::vector<std::string>& words, const setting& with) {
  return program{words, with}.wait();
}

} // namespace cli_test
