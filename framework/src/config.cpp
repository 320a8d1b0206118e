#include "troupe/framework/config.hpp"

#include "config_file.hpp"
#include "config_table.hpp"
#include "troupe/framework/host.hpp"
#include "troupe/framework/units.hpp"
#include "troupe/transport/shared_key.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <unistd.h>

namespace troupe {

using detail::config_row;
using detail::config_value;

namespace {

template <class Config>
std::vector<config_key> keys_of(const std::vector<config_row<Config>>& rows) {
  std::vector<config_key> keys;
  for (auto& row : rows)
    keys.push_back(row.key);
  return keys;
}

/// The number that `text` spells, in the unit of `config_value::number`. Text needs none.
result<uint64_t> number_of(value_kind kind, std::string_view text) {
  if (kind == value_kind::size)
    return parse_size(text);
  if (kind == value_kind::duration)
    return parse_duration(text).map([](std::chrono::nanoseconds length) {
      return static_cast<uint64_t>(
          std::chrono::duration_cast<std::chrono::milliseconds>(length).count());
    });
  if (kind == value_kind::count) {
    uint64_t number = 0;
    auto digits = text.starts_with('-') ? text.substr(1) : text;
    auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (end != digits.data() + digits.size() || digits.empty() ||
        code == std::errc::invalid_argument)
      return fail(errc::invalid_argument, '\'' + std::string{text} + "' is not an integer");
    // A number that does not fit is out of every range.
    return code != std::errc{} || (digits.size() != text.size() && number != 0) ? UINT64_MAX
                                                                                : number;
  }
  return 0;
}

template <class Config>
status apply_row(Config& config, const config_row<Config>& row, std::string_view text,
                 std::string_view origin) {
  auto& key = row.key;
  auto wrong = [&](const std::string& why) {
    return fail(errc::invalid_argument, std::string{origin} + ": " + key.name() + ": " + why);
  };
  auto number = number_of(key.kind, text);
  if (!number)
    return wrong(number.error().text());
  bool bounded = row.high != 0;
  if (bounded && (*number < row.low || *number > row.high))
    return wrong(std::string{text} + " is out of range (" + key.range + ')');
  if (auto stored = row.store(config, config_value{text, *number}); !stored)
    return wrong((bounded ? "" : '\'' + std::string{text} + "': ") + stored.error().text());
  config.origins[key.name()] = origin;
  return {};
}

template <class Config>
status apply_to(Config& config, const std::vector<config_row<Config>>& rows, std::string_view key,
                std::string_view text, std::string_view origin) {
  auto row = std::find_if(rows.begin(), rows.end(),
                          [&](auto& candidate) { return candidate.key.name() == key; });
  if (row == rows.end())
    return fail(errc::not_found, std::string{origin} + ": " + detail::unknown_key(key));
  return apply_row(config, *row, text, origin);
}

void append_line(std::string& text, const std::string& line) {
  text += (text.empty() ? "" : "\n") + line;
}

/// Applies the file, then the flags. Keys of other programs in the file are passed over.
template <class Config>
status apply_all(Config& config, const std::vector<config_row<Config>>& rows,
                 const std::optional<std::filesystem::path>& file, std::span<const setting> flags) {
  std::vector<detail::file_problem> problems;
  if (file) {
    auto contents = detail::read_config_file(*file);
    problems = std::move(contents.problems);
    for (auto& [line, value] : contents.settings) {
      auto done = apply_to(config, rows, value.key, value.text, value.origin);
      if (!done && done.error().code() != errc::not_found)
        problems.push_back({line, done.error().text()});
    }
    std::stable_sort(problems.begin(), problems.end(),
                     [](auto& lhs, auto& rhs) { return lhs.line < rhs.line; });
  }
  std::string text;
  for (auto& problem : problems)
    append_line(text, problem.text);
  for (auto& flag : flags)
    if (auto done = apply_to(config, rows, flag.key, flag.text, flag.origin); !done)
      append_line(text, done.error().text());
  if (!text.empty())
    return fail(errc::invalid_argument, std::move(text));
  return {};
}

/// A host name that serves as a node's id.
std::string id_of_host() {
  auto name = host_name().substr(0, 63);
  for (auto& c : name)
    if (!is_node_id({&c, 1}))
      c = '_';
  return name;
}

} // namespace

std::string_view to_string(value_kind kind) noexcept {
  switch (kind) {
  case value_kind::text:
    return "string";
  case value_kind::list:
    return "list";
  case value_kind::count:
    return "integer";
  case value_kind::size:
    return "size";
  case value_kind::duration:
    return "duration";
  }
  return "value";
}

std::string config_key::name() const {
  return std::string{section} + '.' + std::string{key};
}

std::string config_key::flag_name() const {
  auto flag = "--" + std::string{section} + '-' + std::string{key};
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

std::span<const config_key> config_keys() {
  static const auto keys = keys_of(detail::node_rows());
  return keys;
}

std::span<const config_key> client_config_keys() {
  static const auto keys = keys_of(detail::client_rows());
  return keys;
}

node_config default_node_config() {
  node_config config;
  config.node.id = id_of_host();
  config.worker.cpus = available_cpus();
  auto figures = read_text_file("/proc/meminfo").and_then([](const std::string& text) {
    return parse_meminfo(text);
  });
  // Without /proc tasks can still run; only those that ask for memory will wait.
  if (figures)
    config.worker.memory = figures->total;
  auto* temporary = std::getenv("TMPDIR");
  config.worker.spool = temporary && *temporary == '/' ? temporary : "/var/tmp";
  return config;
}

status apply(node_config& config, std::string_view key, std::string_view text,
             std::string_view origin) {
  return apply_to(config, detail::node_rows(), key, text, origin);
}

status apply(client_config& config, std::string_view key, std::string_view text,
             std::string_view origin) {
  return apply_to(config, detail::client_rows(), key, text, origin);
}

status check(const node_config& config) {
  std::string text;
  auto wrong = [&](std::string_view key, const std::string& why) {
    auto origin = config.origins.find(std::string{key});
    append_line(text, (origin == config.origins.end() ? "" : origin->second + ": ") +
                          std::string{key} + ' ' + why);
  };
  auto& limits = config.membership;
  if (limits.heartbeat >= limits.suspect_after)
    wrong("membership.suspect_after", "(" + format_duration(limits.suspect_after) +
                                          ") must be longer than membership.heartbeat (" +
                                          format_duration(limits.heartbeat) + ')');
  if (limits.suspect_after >= limits.dead_after)
    wrong("membership.dead_after", "(" + format_duration(limits.dead_after) +
                                       ") must be longer than membership.suspect_after (" +
                                       format_duration(limits.suspect_after) + ')');
  auto renewal = limits.heartbeat + config.monitor.interval;
  if (limits.lease <= renewal)
    wrong("membership.lease", "(" + format_duration(limits.lease) +
                                  ") must be longer than membership.heartbeat and "
                                  "monitor.interval together (" +
                                  format_duration(renewal) + "), after which it is renewed");
  auto& node = config.node;
  if (!node.roles.controller && !node.controller)
    wrong("node.controller", "is missing: a node that is only a worker needs its controller's "
                             "address (host:port)");
  if (node.roles.controller && node.controller && *node.controller != node.listen)
    wrong("node.controller", "(" + to_string(*node.controller) +
                                 ") names another node, but this one has the role controller and "
                                 "listens on " +
                                 to_string(node.listen) +
                                 "; leave the key out, or set node.roles to worker");
  auto& key_file = config.cluster.key_file;
  if (!key_file.empty()) {
    if (auto key = transport::load_key_file(key_file); !key)
      wrong("cluster.key_file", "cannot be used: " + key.error().text());
  } else if (node.roles.controller && transport::is_open_address(node.listen.host)) {
    wrong("node.listen", "(" + to_string(node.listen) +
                             ") is reached by others, and without a key nothing tells who may "
                             "connect: " +
                             std::string{transport::key_remedy} + "; or listen on 127.0.0.1");
  }
  if (node.roles.worker) {
    auto& spool = config.worker.spool;
    std::error_code ignored;
    if (!std::filesystem::is_directory(spool, ignored))
      wrong("worker.spool", "(" + spool.string() + ") is not a directory");
    else if (::access(spool.c_str(), W_OK | X_OK) != 0)
      wrong("worker.spool", "(" + spool.string() + ") cannot be written by this user");
  }
  if (!text.empty())
    return fail(errc::invalid_argument, std::move(text));
  return {};
}

result<node_config> load_node_config(const std::optional<std::filesystem::path>& file,
                                     std::span<const setting> flags) {
  auto config = default_node_config();
  auto done =
      apply_all(config, detail::node_rows(), file, flags).and_then([&] { return check(config); });
  if (!done)
    return fail(done.error());
  return config;
}

result<client_config> load_client_config(const std::optional<std::filesystem::path>& file,
                                         std::span<const setting> flags) {
  client_config config;
  if (auto done = apply_all(config, detail::client_rows(), file, flags); !done)
    return fail(done.error());
  return config;
}

std::vector<std::filesystem::path> default_config_files() {
  std::vector<std::filesystem::path> files;
  auto* base = std::getenv("XDG_CONFIG_HOME");
  auto* home = std::getenv("HOME");
  if (base && *base == '/')
    files.push_back(std::filesystem::path{base} / "troupe/troupe.toml");
  else if (home && *home == '/')
    files.push_back(std::filesystem::path{home} / ".config/troupe/troupe.toml");
  files.emplace_back("/etc/troupe/troupe.toml");
  return files;
}

} // namespace troupe
