// A task to start, as the guardian was asked for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::guardian {

/// What to execute. The strings belong to the request's body, which must outlive this.
struct task {
  uint64_t id = 0;
  int output = -1; ///< becomes the standard output
  int errors = -1; ///< becomes the standard error
  const char* directory = "";
  std::vector<char*> arguments;   ///< for execve: ends with a null pointer
  std::vector<char*> environment; ///< likewise
};

/// Takes `body` (see guardian_protocol.hpp) apart. execve wants pointers to non-const characters;
/// nothing is changed through them.
/// @returns whether the body was well formed; else `out` is unspecified.
bool parse_body(char* body, size_t length, size_t strings, size_t arguments, task& out);

/// The files to try for `arguments[0]`, in order: itself when it has a slash, else every directory
/// of PATH in the task's own environment.
std::vector<std::string> candidates_for(const task& what);

} // namespace troupe::guardian
