#include "surroundings.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <doctest/doctest.h>
#include <fstream>
#include <iterator>
#include <unistd.h>

namespace cluster_test {

std::vector<pid_t> marked_processes(const std::string& mark, std::string_view also) {
  std::vector<pid_t> found;
  std::error_code problem;
  for (auto& entry : std::filesystem::directory_iterator{"/proc", problem}) {
    auto name = entry.path().filename().string();
    pid_t id = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), id).ptr !=
        name.data() + name.size())
      continue;
    auto marked = false;
    auto fits = also.empty();
    std::ifstream environment{entry.path() / "environ", std::ios::binary};
    for (std::string text; std::getline(environment, text, '\0');) {
      marked |= text == mark;
      fits |= text.starts_with(also);
    }
    if (marked && fits)
      found.push_back(id);
  }
  return found;
}

scratch_directory::scratch_directory() {
  auto name = (std::filesystem::temp_directory_path() / "troupe-cluster-XXXXXX").string();
  REQUIRE(::mkdtemp(name.data()) != nullptr);
  path_ = name;
}

scratch_directory::~scratch_directory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::vector<std::string> surroundings(const std::vector<std::string>& more) {
  std::vector<std::string> entries;
  for (auto entry = ::environ; *entry; ++entry) {
    std::string_view text{*entry};
    auto guides = text.starts_with("TROUPE_") || text.starts_with("XDG_");
    auto replaced = std::any_of(more.begin(), more.end(), [&](const std::string& ours) {
      return text.starts_with(ours.substr(0, ours.find('=') + 1));
    });
    if (!guides && !replaced)
      entries.emplace_back(text);
  }
  entries.insert(entries.end(), more.begin(), more.end());
  return entries;
}

std::string read_file(const std::filesystem::path& file) {
  std::ifstream in{file, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, {}};
}

void write_file(const std::filesystem::path& file, std::string_view content) {
  std::ofstream out{file, std::ios::binary};
  out << content;
  REQUIRE(out.flush().good());
}

} // namespace cluster_test
