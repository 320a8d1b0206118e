#include "settings.hpp"

#include "arguments.hpp"
#include "troupe/framework/config.hpp"

#include <system_error>

namespace troupe::cli {

namespace {

constexpr auto controller_key = "client.controller";
constexpr auto key_file_key = "cluster.key_file";

/// What the option says, else what `variable` in the environment says.
std::vector<setting> given_value(const char* key, const std::optional<std::string>& option,
                                 const char* option_name, const char* variable,
                                 std::span<const std::string> environment) {
  if (option)
    return {{key, *option, option_name}};
  if (auto text = find_variable(environment, variable); text && *text)
    return {{key, text, variable}};
  return {};
}

} // namespace

std::optional<std::filesystem::path> find_config_file(const connection_options& options) {
  if (options.config)
    return options.config;
  for (auto& file : default_config_files()) {
    std::error_code problem;
    if (std::filesystem::exists(file, problem))
      return file;
  }
  return std::nullopt;
}

result<controller_address> find_controller(const connection_options& options,
                                           std::span<const std::string> environment) {
  auto given = given_value(controller_key, options.controller, "--controller", "TROUPE_CONTROLLER",
                           environment);
  auto config = load_client_config(find_config_file(options), given);
  if (!config)
    return fail(config.error());
  if (!config->client.controller)
    return controller_address{{"127.0.0.1", default_port}, "the default"};
  return controller_address{*config->client.controller, config->origins[controller_key]};
}

result<std::filesystem::path> find_key_file(const connection_options& options,
                                            std::span<const std::string> environment) {
  auto given =
      given_value(key_file_key, options.key_file, "--key-file", "TROUPE_KEY_FILE", environment);
  auto config = load_client_config(find_config_file(options), given);
  if (!config)
    return fail(config.error());
  return config->cluster.key_file;
}

std::string find_device(const connection_options& options,
                        std::span<const std::string> environment) {
  if (options.device)
    return *options.device;
  auto text = find_variable(environment, "TROUPE_DEVICE");
  return text && *text ? text : "auto";
}

} // namespace troupe::cli
