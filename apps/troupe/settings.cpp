#include "settings.hpp"

#include "arguments.hpp"
#include "troupe/framework/config.hpp"

#include <system_error>

namespace troupe::cli {

namespace {

constexpr auto controller_key = "client.controller";

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
  std::vector<setting> given;
  if (options.controller)
    given.push_back({controller_key, *options.controller, "--controller"});
  else if (auto text = find_variable(environment, "TROUPE_CONTROLLER"); text && *text)
    given.push_back({controller_key, text, "TROUPE_CONTROLLER"});
  auto config = load_client_config(find_config_file(options), given);
  if (!config)
    return fail(config.error());
  if (!config->client.controller)
    return controller_address{{"127.0.0.1", default_port}, "the default"};
  return controller_address{*config->client.controller, config->origins[controller_key]};
}

std::string find_device(const connection_options& options,
                        std::span<const std::string> environment) {
  if (options.device)
    return *options.device;
  auto text = find_variable(environment, "TROUPE_DEVICE");
  return text && *text ? text : "auto";
}

} // namespace troupe::cli
