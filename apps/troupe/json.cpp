#include "json.hpp"

namespace troupe::cli {

json json_of(const submitted& value) {
  return {{"job", value.job}};
}

json json_of(const submit_request& value) {
  return {{"name", value.name},     {"user", value.user},         {"argv", value.argv},
          {"env", value.env},       {"cwd", value.cwd},           {"cpus", value.cpus},
          {"memory", value.memory}, {"is_array", value.is_array}, {"first", value.first},
          {"last", value.last}};
}

json json_of(const job_summary& value) {
  return {{"id", value.id},
          {"name", value.name},
          {"user", value.user},
          {"state", value.state},
          {"tasks", value.tasks},
          {"queued", value.queued},
          {"running", value.running},
          {"succeeded", value.succeeded},
          {"failed", value.failed},
          {"cancelled", value.cancelled},
          {"restarts", value.restarts},
          {"exit_status", value.exit_status},
          {"waiting", value.waiting},
          {"age_ms", value.age_ms},
          {"run_ms", value.run_ms}};
}

json json_of(const task_summary& value) {
  return {{"index", value.index},
          {"state", value.state},
          {"node", value.node},
          {"attempt", value.attempt},
          {"exit_code", value.exit_code},
          {"signal", value.signal},
          {"reason", value.reason},
          {"run_ms", value.run_ms},
          {"stdout_bytes", value.stdout_bytes},
          {"stderr_bytes", value.stderr_bytes}};
}

json json_of(const job_details& value) {
  return {{"summary", json_of(value.summary)},
          {"request", json_of(value.request)},
          {"tasks", json_of(value.tasks)}};
}

json json_of(const node_summary& value) {
  return {{"id", value.id},
          {"incarnation", value.incarnation},
          {"roles", value.roles},
          {"state", value.state},
          {"address", value.address},
          {"path", value.path},
          {"cpus", value.cpus},
          {"cpus_granted", value.cpus_granted},
          {"memory", value.memory},
          {"memory_granted", value.memory_granted},
          {"running", value.running},
          {"finished", value.finished},
          {"epoch", value.epoch},
          {"cpu_busy_permille", value.cpu_busy_permille},
          {"memory_available", value.memory_available},
          {"heard_ms_ago", value.heard_ms_ago}};
}

json json_of(const cluster_info& value) {
  return {{"version", value.version},
          {"controller", value.controller},
          {"device", value.device},
          {"device_reason", value.device_reason},
          {"uptime_ms", value.uptime_ms}};
}

std::string to_text(const json& value) {
  return value.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

} // namespace troupe::cli
