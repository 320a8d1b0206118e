#include "config_table.hpp"

#include "troupe/framework/suggest.hpp"
#include "troupe/framework/units.hpp"

#include <algorithm>
#include <array>

namespace troupe::detail {

namespace {

using transport::endpoint;
using transport::parse_endpoint;

constexpr uint64_t kibi = 1024;
constexpr uint64_t second = 1000;
constexpr uint64_t day = 24 * 3600 * second;

std::string range_of(value_kind kind, uint64_t low, uint64_t high) {
  auto spell = [kind](uint64_t number) {
    if (kind == value_kind::size)
      return format_size(number);
    if (kind == value_kind::duration)
      return format_duration(std::chrono::milliseconds{static_cast<int64_t>(number)});
    return std::to_string(number);
  };
  return spell(low) + " to " + spell(high);
}

/// A key whose value is a number.
template <class Config>
config_row<Config> number_row(std::string_view section, std::string_view key, value_kind kind,
                              std::string fallback, uint64_t low, uint64_t high,
                              std::string_view help,
                              status (*store)(Config&, const config_value&)) {
  return {
      {section, key, kind, std::move(fallback), range_of(kind, low, high), help}, low, high, store};
}

/// A key whose value is text; `store` checks it.
template <class Config>
config_row<Config> text_row(std::string_view section, std::string_view key, value_kind kind,
                            std::string fallback, std::string range, std::string_view help,
                            status (*store)(Config&, const config_value&)) {
  return {{section, key, kind, std::move(fallback), std::move(range), help}, 0, 0, store};
}

std::chrono::milliseconds milliseconds_of(const config_value& value) {
  return std::chrono::milliseconds{static_cast<int64_t>(value.number)};
}

status store_id(node_config& config, const config_value& value) {
  if (!is_node_id(value.text))
    return fail(errc::invalid_argument, "an id has 1 to 63 characters out of A-Z a-z 0-9 . _ -");
  config.node.id = value.text;
  return {};
}

status store_roles(node_config& config, const config_value& value) {
  static const std::vector<std::string> names{"controller", "worker"};
  node_roles roles{false, false};
  for (auto rest = value.text; !rest.empty();) {
    auto name = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(name.size() + 1, rest.size()));
    if (name == names[0])
      roles.controller = true;
    else if (name == names[1])
      roles.worker = true;
    else
      return fail(errc::invalid_argument, "no role is called '" + std::string{name} +
                                              "'; the roles are controller and worker" +
                                              did_you_mean(name, names));
  }
  if (!roles.controller && !roles.worker)
    return fail(errc::invalid_argument, "a node needs a role: controller, worker or both");
  config.node.roles = roles;
  return {};
}

result<endpoint> remote_endpoint(std::string_view text) {
  auto where = parse_endpoint(text, default_port);
  if (where && (where->host.empty() || where->port == 0))
    return fail(errc::invalid_argument, "a node is reached by a host and a port that is not 0");
  return where;
}

status store_listen(node_config& config, const config_value& value) {
  auto where = parse_endpoint(value.text, default_port);
  if (!where)
    return fail(where.error());
  config.node.listen = *where;
  return {};
}

template <class Member>
status store_controller(Member& member, std::string_view text) {
  auto where = remote_endpoint(text);
  if (!where)
    return fail(where.error());
  member = *where;
  return {};
}

status store_device(node_config& config, const config_value& value) {
  constexpr std::string_view adapter = "verbs:";
  static const std::vector<std::string> names{"auto", "verbs", "soft", "soft:tcp"};
  auto known = std::find(names.begin(), names.end(), value.text) != names.end() ||
               (value.text.starts_with(adapter) && value.text.size() > adapter.size());
  if (!known)
    return fail(errc::invalid_argument, "a device is auto, verbs, verbs:NAME, soft or soft:tcp" +
                                            did_you_mean(value.text, names));
  config.transport.device = value.text;
  return {};
}

template <class Config>
status store_key_file(Config& config, const config_value& value) {
  if (value.text.empty())
    return fail(errc::invalid_argument, "a key file has a name");
  config.cluster.key_file = value.text;
  return {};
}

template <class Config>
config_row<Config> key_file_row() {
  return text_row<Config>("cluster", "key_file", value_kind::text, "none", "path",
                          "file with the key that all nodes and users of the cluster have; "
                          "TROUPE_KEY_FILE names it too",
                          store_key_file<Config>);
}

status store_spool(node_config& config, const config_value& value) {
  if (!value.text.starts_with('/'))
    return fail(errc::invalid_argument, "the spool directory must be an absolute path");
  config.worker.spool = value.text;
  return {};
}

status store_log_level(node_config& config, const config_value& value) {
  static const std::vector<std::string> names{"trace", "debug",    "info", "warning",
                                              "error", "critical", "off"};
  if (std::find(names.begin(), names.end(), value.text) == names.end())
    return fail(errc::invalid_argument,
                "a level is trace, debug, info, warning, error, critical or off" +
                    did_you_mean(value.text, names));
  config.log.level = value.text;
  return {};
}

using node = node_config;
using value = config_value;

std::vector<config_row<node_config>> make_node_rows() {
  using enum value_kind;
  return {
      text_row<node>("node", "id", text, "the host's name", "1 to 63 of A-Z a-z 0-9 . _ -",
                     "name of this node, its own in the cluster", store_id),
      text_row<node>("node", "roles", list, "controller,worker", "controller, worker",
                     "what this node does", store_roles),
      text_row<node>("node", "listen", text, "127.0.0.1:4747", "host:port; port 0 for any",
                     "address on which other nodes and the command line reach this node",
                     store_listen),
      text_row<node>(
          "node", "controller", text, "this node", "host:port",
          "address of the controller, for a node that is only a worker",
          [](node& c, const value& v) { return store_controller(c.node.controller, v.text); }),
      key_file_row<node>(),
      text_row<node>("transport", "device", text, "auto", "auto, verbs, verbs:NAME, soft, soft:tcp",
                     "network device; TROUPE_DEVICE overrides it", store_device),
      number_row<node>("transport", "eager_threshold", size, "32KiB", 1024, kibi * kibi,
                       "largest message that is copied instead of read by the receiver",
                       [](node& c, const value& v) -> status {
                         c.transport.eager_threshold = v.number;
                         return {};
                       }),
      number_row<node>("worker", "cpus", count, "CPUs of the host", 1, 65536,
                       "CPUs that tasks may take",
                       [](node& c, const value& v) -> status {
                         c.worker.cpus = static_cast<uint32_t>(v.number);
                         return {};
                       }),
      number_row<node>("worker", "memory", size, "memory of the host", kibi * kibi,
                       kibi * kibi * kibi * kibi * kibi, "memory that tasks may take",
                       [](node& c, const value& v) -> status {
                         c.worker.memory = v.number;
                         return {};
                       }),
      number_row<node>("worker", "slots", count, "64", 1, 256, "tasks in flight at most",
                       [](node& c, const value& v) -> status {
                         c.worker.slots = static_cast<uint32_t>(v.number);
                         return {};
                       }),
      text_row<node>("worker", "spool", text, "$TMPDIR or /var/tmp", "absolute path",
                     "directory for the output of tasks", store_spool),
      number_row<node>("membership", "heartbeat", duration, "500ms", 10, 60 * second,
                       "how often a worker says that it is there",
                       [](node& c, const value& v) -> status {
                         c.membership.heartbeat = milliseconds_of(v);
                         return {};
                       }),
      number_row<node>("membership", "suspect_after", duration, "1.5s", 20, 3600 * second,
                       "silence after which a worker gets no new tasks",
                       [](node& c, const value& v) -> status {
                         c.membership.suspect_after = milliseconds_of(v);
                         return {};
                       }),
      number_row<node>("membership", "dead_after", duration, "3s", 30, 3600 * second,
                       "silence after which a worker is dead",
                       [](node& c, const value& v) -> status {
                         c.membership.dead_after = milliseconds_of(v);
                         return {};
                       }),
      number_row<node>("membership", "lease", duration, "2.5s", 30, 3600 * second,
                       "silence after which a worker's tasks are killed; before that they are not "
                       "started elsewhere",
                       [](node& c, const value& v) -> status {
                         c.membership.lease = milliseconds_of(v);
                         return {};
                       }),
      number_row<node>("membership", "rejoin_for", duration, "30s", 0, day,
                       "how long a worker keeps trying to reach a lost controller",
                       [](node& c, const value& v) -> status {
                         c.membership.rejoin_for = milliseconds_of(v);
                         return {};
                       }),
      number_row<node>("monitor", "interval", duration, "500ms", 10, 3600 * second,
                       "how often the workers' state is read",
                       [](node& c, const value& v) -> status {
                         c.monitor.interval = milliseconds_of(v);
                         return {};
                       }),
      number_row<node>("scheduler", "retries", count, "2", 0, 1000,
                       "how often a task whose worker died is started again",
                       [](node& c, const value& v) -> status {
                         c.scheduler.retries = static_cast<uint32_t>(v.number);
                         return {};
                       }),
      text_row<node>("log", "level", text, "warning",
                     "trace, debug, info, warning, error, critical, off", "what is logged",
                     store_log_level),
  };
}

std::vector<config_row<client_config>> make_client_rows() {
  return {text_row<client_config>("client", "controller", value_kind::text, "127.0.0.1:4747",
                                  "host:port", "address of the controller",
                                  [](client_config& c, const value& v) {
                                    return store_controller(c.client.controller, v.text);
                                  }),
          key_file_row<client_config>()};
}

} // namespace

const std::vector<config_row<node_config>>& node_rows() {
  static const auto rows = make_node_rows();
  return rows;
}

const std::vector<config_row<client_config>>& client_rows() {
  static const auto rows = make_client_rows();
  return rows;
}

const std::vector<std::string>& all_key_names() {
  static const auto names = [] {
    std::vector<std::string> all;
    for (auto& row : node_rows())
      all.push_back(row.key.name());
    for (auto& row : client_rows())
      all.push_back(row.key.name());
    return all;
  }();
  return names;
}

std::string unknown_key(std::string_view name) {
  auto text = "unknown key '" + std::string{name} + '\'';
  auto& names = all_key_names();
  auto leaf = name.substr(name.rfind('.') + 1);
  // The right key in the wrong section, or in none.
  for (auto& known : names)
    if (known.substr(known.find('.') + 1) == leaf)
      return text + "; did you mean '" + known + "'?";
  return text + did_you_mean(name, names);
}

} // namespace troupe::detail
