// The controller's answers as JSON. Keys are the names of the members in messages.hpp.
#pragma once

#include "protocol.hpp"

#include <nlohmann/json.hpp>

namespace troupe::cli {

/// Keeps the order of the keys.
using json = nlohmann::ordered_json;

json json_of(const submitted& value);
json json_of(const submit_request& value);
json json_of(const job_summary& value);
json json_of(const task_summary& value);
json json_of(const job_details& value);
json json_of(const node_summary& value);
json json_of(const cluster_info& value);

template <class T>
json json_of(const std::vector<T>& values) {
  auto list = json::array();
  for (auto& value : values)
    list.push_back(json_of(value));
  return list;
}

/// Text for standard output, with a line end. Bytes that are not UTF-8 become U+FFFD.
std::string to_text(const json& value);

} // namespace troupe::cli
