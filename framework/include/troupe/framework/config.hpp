// What a node, or the command line, is told by its configuration file and its flags.
//
// A file is TOML with one table per section below. Everything is checked here, once; what comes out
// can be used as it is. Precedence: defaults, then the file, then flags.
#pragma once

#include "troupe/framework/node_info.hpp"
#include "troupe/transport/endpoint.hpp"
#include "troupe/transport/error.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// The port that is meant when an address names none.
constexpr uint16_t default_port = 4747;

/// The configuration of one node. Members are named like sections and keys of the file; what they
/// mean, their ranges and defaults stand in `config_keys()`.
struct node_config {
  struct {
    std::string id;
    node_roles roles;
    transport::endpoint listen{"127.0.0.1", default_port};
    std::optional<transport::endpoint> controller;
  } node;
  struct {
    std::filesystem::path key_file; ///< empty: no key
  } cluster;
  struct {
    std::string device = "auto";
    uint64_t eager_threshold = 32768; ///< bytes
  } transport;
  struct {
    uint32_t cpus = 1;
    uint64_t memory = 0; ///< bytes
    uint32_t slots = 64;
    std::filesystem::path spool;
  } worker;
  struct {
    std::chrono::milliseconds heartbeat{500};
    std::chrono::milliseconds suspect_after{1500};
    std::chrono::milliseconds dead_after{3000};
    std::chrono::milliseconds lease{2500};
    std::chrono::milliseconds rejoin_for{30'000};
  } membership;
  struct {
    std::chrono::milliseconds interval{500};
  } monitor;
  struct {
    uint32_t retries = 2;
  } scheduler;
  struct {
    std::string level = "warning"; ///< a name that spdlog knows
  } log;

  /// Where each key that is not at its default was set: "worker.cpus" to "cluster.toml:7".
  std::map<std::string, std::string> origins;
};

/// The configuration of the command line program.
struct client_config {
  struct {
    std::optional<transport::endpoint> controller;
  } client;
  struct {
    std::filesystem::path key_file; ///< empty: no key
  } cluster;

  /// As in `node_config`.
  std::map<std::string, std::string> origins;
};

/// The form of a value.
enum class value_kind : uint8_t {
  text,     ///< a TOML string
  list,     ///< a TOML array of strings; as a flag: "a,b"
  count,    ///< a TOML integer
  size,     ///< a TOML integer (bytes) or a string with a unit, see `parse_size`
  duration, ///< a TOML string with a unit, see `parse_duration`
};

/// "string", "list", "integer", "size" or "duration".
std::string_view to_string(value_kind kind) noexcept;

/// One key, for generating a command line, a manual or completion.
struct config_key {
  std::string_view section; ///< "worker"
  std::string_view key;     ///< "cpus"
  value_kind kind = value_kind::text;
  std::string fallback;  ///< the default, in words where it depends on the machine
  std::string range;     ///< what is allowed: "1 to 256", "host:port"
  std::string_view help; ///< what it means: a phrase without a full stop

  std::string name() const;      ///< "membership.dead_after"
  std::string flag_name() const; ///< "--membership-dead-after"
};

/// Every key of a node, in the order of `node_config`. Any thread.
std::span<const config_key> config_keys();

/// Every key of the command line program. Any thread.
std::span<const config_key> client_config_keys();

/// A value that was given outside of a file, say as a flag.
struct setting {
  std::string key;    ///< "worker.cpus"
  std::string text;   ///< "4"
  std::string origin; ///< what errors name: "--worker-cpus", "TROUPE_CONTROLLER"
};

/// The defaults on this machine: id, CPUs and memory are the host's, the spool is $TMPDIR or
/// /var/tmp.
node_config default_node_config();

/// Sets the key `key` ("worker.cpus") to the value that `text` spells. `origin` is where the text
/// stands; errors begin with it.
/// @returns `errc::not_found` for an unknown key, `errc::invalid_argument` for a value that is
/// malformed or out of range; `config` is unchanged then.
status apply(node_config& config, std::string_view key, std::string_view text,
             std::string_view origin);
status apply(client_config& config, std::string_view key, std::string_view text,
             std::string_view origin);

/// Checks what no single key can tell: limits that contradict each other, roles that lack an
/// address, a spool directory that cannot be written, a key file that cannot be used, an address
/// that others reach without a key that says who may.
/// @returns `errc::invalid_argument`; the text has one line for each thing that is wrong.
status check(const node_config& config);

/// Reads `file`, if given, over the defaults, then `flags` over both, and checks the result. A file
/// may hold the sections of `client_config` too; they are only checked for unknown keys and types.
/// @returns an error whose text has one line for each thing that is wrong, with file and line; not
/// only the first.
result<node_config> load_node_config(const std::optional<std::filesystem::path>& file,
                                     std::span<const setting> flags);

/// Likewise for the command line program, which may read a node's file.
result<client_config> load_client_config(const std::optional<std::filesystem::path>& file,
                                         std::span<const setting> flags);

/// Where the command line program looks for its file when told none; the first that exists counts:
/// $XDG_CONFIG_HOME/troupe/troupe.toml (or ~/.config/...), /etc/troupe/troupe.toml.
std::vector<std::filesystem::path> default_config_files();

} // namespace troupe
