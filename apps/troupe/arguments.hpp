// What people type behind the options of commands, read and checked. Plain functions.
#pragma once

#include "troupe/transport/error.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::cli {

/// The indices of an array of tasks, both ends included.
struct index_range {
  uint64_t first = 0;
  uint64_t last = 0;

  bool operator==(const index_range&) const = default;
};

/// Reads "1-60" or a single index "7".
/// @returns `errc::invalid_argument` with a text that quotes the input.
result<index_range> parse_index_range(std::string_view text);

/// Reads a decimal number without a sign, at most 18446744073709551615. `what` ("a job id") names
/// it in the error, which is `errc::invalid_argument`.
result<uint64_t> parse_number(std::string_view text, std::string_view what);

/// The environment of a task: `base` (entries NAME=value), where each of `overrides` replaces or
/// adds one: "NAME=value", or "NAME" alone for the value that it has in `caller`. Entries of `base`
/// without '=' are left out.
/// @returns `errc::invalid_argument` for an empty name, `errc::not_found` for a NAME that `caller`
/// lacks.
result<std::vector<std::string>> task_environment(std::span<const std::string> base,
                                                  std::span<const std::string> overrides,
                                                  std::span<const std::string> caller);

/// Value of `name` in `environment` (entries NAME=value), or null. Points into `environment`.
const char* find_variable(std::span<const std::string> environment, std::string_view name);

/// The name that a job gets when it is given none: the last part of its command's path.
std::string default_job_name(std::string_view command);

} // namespace troupe::cli
