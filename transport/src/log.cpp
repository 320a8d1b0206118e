#include "troupe/transport/log.hpp"

#include <cstdlib>
#include <mutex>
#include <optional>
#include <spdlog/sinks/stdout_sinks.h>

namespace troupe {

namespace {

std::mutex registry_guard;
std::optional<spdlog::level::level_enum> chosen_level;

spdlog::level::level_enum initial_level() {
  if (auto text = std::getenv("TROUPE_LOG"))
    return spdlog::level::from_str(text);
  return spdlog::level::warn;
}

} // namespace

std::shared_ptr<spdlog::logger> log_for(const std::string& component) {
  std::lock_guard guard{registry_guard};
  if (auto known = spdlog::get(component))
    return known;
  // One sink for all, so that lines of two components do not mix.
  static auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  auto logger = std::make_shared<spdlog::logger>(component, sink);
  logger->set_level(chosen_level.value_or(initial_level()));
  logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %l %n: %v");
  spdlog::register_logger(logger);
  return logger;
}

void set_log_level(spdlog::level::level_enum level) {
  std::lock_guard guard{registry_guard};
  chosen_level = level;
  spdlog::apply_all(
      [level](const std::shared_ptr<spdlog::logger>& logger) { logger->set_level(level); });
}

} // namespace troupe
