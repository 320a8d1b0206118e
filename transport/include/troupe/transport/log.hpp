// Where the layers log: one spdlog logger per component.
#pragma once

#include <memory>
#include <spdlog/spdlog.h>
#include <string>

namespace troupe {

/// The logger of `component` ("transport", "soft", "verbs", "node", "scheduler" ...), made on first
/// use with a sink on stderr. Its level is `TROUPE_LOG` (`trace` to `off`, default `warning`) until
/// `set_log_level` is called. Any thread.
std::shared_ptr<spdlog::logger> log_for(const std::string& component);

/// Sets the level of every component, present and future: `trace`, `debug`, `info`, `warning`,
/// `error`, `critical` or `off`. Any thread.
void set_log_level(spdlog::level::level_enum level);

} // namespace troupe
