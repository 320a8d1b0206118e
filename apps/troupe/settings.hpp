// Where the program finds its controller and its device.
#pragma once

#include "troupe/transport/endpoint.hpp"
#include "troupe/transport/error.hpp"

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe::cli {

/// The options that stand before a command.
struct connection_options {
  std::optional<std::string> controller;
  std::optional<std::filesystem::path> config;
  std::optional<std::string> device;
  std::optional<std::string> key_file;
};

struct controller_address {
  transport::endpoint where;
  std::string origin; ///< where it was found: "--controller", "troupe.toml:3", "the default"
};

/// The configuration file that counts: the one named by an option, else the first that exists in
/// the usual places, else none.
std::optional<std::filesystem::path> find_config_file(const connection_options& options);

/// In this order: the option, TROUPE_CONTROLLER in `environment` (unless empty), the file, the
/// default address 127.0.0.1:4747.
/// @returns an error for an address or a file that is malformed; its text may have several lines.
result<controller_address> find_controller(const connection_options& options,
                                           std::span<const std::string> environment);

/// The file with the cluster's key: the option, TROUPE_KEY_FILE in `environment` (unless empty), or
/// the one of the configuration file, in this order; empty when none names one.
/// @returns an error as `find_controller`.
result<std::filesystem::path> find_key_file(const connection_options& options,
                                            std::span<const std::string> environment);

/// The option, else TROUPE_DEVICE in `environment` (unless empty), else "auto".
std::string find_device(const connection_options& options,
                        std::span<const std::string> environment);

} // namespace troupe::cli
