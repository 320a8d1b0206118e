#include "task.hpp"

#include <cstring>
#include <string_view>

namespace troupe::guardian {

namespace {

// What the C library takes when PATH is not set.
constexpr std::string_view default_path = "/bin:/usr/bin";

std::string_view path_of(const task& what) {
  constexpr std::string_view key = "PATH=";
  for (auto entry : what.environment)
    if (entry && std::string_view{entry}.starts_with(key))
      return std::string_view{entry}.substr(key.size());
  return default_path;
}

} // namespace

bool parse_body(char* body, size_t length, size_t strings, size_t arguments, task& out) {
  // Each string takes a byte at least, so `strings` is bounded by what was really received.
  if (length == 0 || strings > length || arguments == 0 || arguments >= strings)
    return false;
  if (body[length - 1] != '\0')
    return false;
  out.arguments.reserve(arguments + 1);
  out.environment.reserve(strings - arguments);
  size_t position = 0;
  for (size_t index = 0; index < strings; ++index) {
    if (position == length)
      return false;
    auto text = body + position;
    position += std::strlen(text) + 1;
    if (index == 0)
      out.directory = text;
    else if (index <= arguments)
      out.arguments.push_back(text);
    else
      out.environment.push_back(text);
  }
  out.arguments.push_back(nullptr);
  out.environment.push_back(nullptr);
  return position == length;
}

std::vector<std::string> candidates_for(const task& what) {
  std::string_view name = what.arguments.front();
  if (name.empty() || name.find('/') != name.npos)
    return {std::string{name}};
  std::vector<std::string> found;
  auto path = path_of(what);
  for (;;) {
    auto colon = path.find(':');
    auto directory = path.substr(0, colon);
    // As in every shell, an empty entry is the working directory.
    found.push_back(std::string{directory.empty() ? "." : directory} + "/" + std::string{name});
    if (colon == path.npos)
      return found;
    path.remove_prefix(colon + 1);
  }
}

} // namespace troupe::guardian
