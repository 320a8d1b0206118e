// The tables that describe every key and how it is stored. Internal.
#pragma once

#include "troupe/framework/config.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace troupe::detail {

/// A value after it has been read according to its kind.
struct config_value {
  std::string_view text;
  uint64_t number = 0; ///< count; size in bytes; duration in milliseconds
};

/// One key with the bounds of a number (in `config_value::number`'s unit) and the way to store it.
template <class Config>
struct config_row {
  config_key key;
  uint64_t low = 0;
  uint64_t high = 0;
  status (*store)(Config&, const config_value&) = nullptr;
};

const std::vector<config_row<node_config>>& node_rows();
const std::vector<config_row<client_config>>& client_rows();

/// The names of all keys of all tables, for unknown keys.
const std::vector<std::string>& all_key_names();

/// `unknown key 'worker.cpu'; did you mean 'worker.cpus'?`
std::string unknown_key(std::string_view name);

} // namespace troupe::detail
