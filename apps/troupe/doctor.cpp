#include "doctor.hpp"

#include "format.hpp"
#include "table.hpp"
#include "troupe/framework/units.hpp"
#include "troupe/transport/shared_key.hpp"

#include <nlohmann/json.hpp>

namespace troupe::cli {

namespace {

constexpr uint64_t few_files = 1024;
constexpr uint64_t too_few_files = 128;
constexpr uint64_t little_space = 1024ULL * 1024 * 1024;

tint tint_of(grade value) {
  switch (value) {
  case grade::ok:
    return tint::good;
  case grade::warning:
    return tint::busy;
  case grade::problem:
    break;
  }
  return tint::bad;
}

std::string padded(std::string_view text, size_t width) {
  std::string result{text};
  result.resize(std::max(width, result.size()), ' ');
  return result;
}

} // namespace

std::string_view to_string(grade value) noexcept {
  switch (value) {
  case grade::ok:
    return "ok";
  case grade::warning:
    return "warning";
  case grade::problem:
    break;
  }
  return "problem";
}

finding judge_device(const device_trial& trial) {
  if (trial.name.empty())
    return {grade::problem, "device", trial.problem.text(),
            "name one that is usable with --device, TROUPE_DEVICE or [transport] device"};
  if (trial.problem)
    return {grade::problem, "device", trial.name + " does not work: " + trial.problem.text(),
            "mend that, or use another device, say TROUPE_DEVICE=soft"};
  return {grade::ok, "device",
          trial.name + " would be used (" + trial.reason + "); " + format_size(trial_bytes) +
              " of memory could be allocated and registered",
          ""};
}

finding judge_key(const std::string& file, const error& problem, bool has_adapter) {
  if (problem)
    return {grade::problem, "key", problem.text(), std::string{transport::key_remedy}};
  if (!file.empty())
    return {grade::ok, "key", file + "; only its owner may read it", ""};
  std::string text = "none: only processes of this user on this machine connect to each other";
  if (!has_adapter)
    return {grade::ok, "key", text, ""};
  return {grade::warning, "key", text + ", and RDMA adapters are not used",
          std::string{transport::key_remedy}};
}

finding judge_memlock(system_limit bytes, bool has_adapter) {
  if (!bytes)
    return {grade::ok, "memlock", "unlimited", ""};
  auto size = format_size(*bytes);
  if (!has_adapter)
    return {grade::ok, "memlock", size + "; only RDMA adapters need more, and there is none", ""};
  if (*bytes >= trial_bytes)
    return {grade::ok, "memlock", size, ""};
  return {grade::warning, "memlock",
          size + ": memory that an RDMA adapter uses is locked, and this is soon used up",
          "`ulimit -l unlimited`; for good, '* - memlock unlimited' in "
          "/etc/security/limits.d/troupe.conf, or LimitMEMLOCK=infinity in a systemd unit"};
}

finding judge_open_files(system_limit files) {
  if (!files)
    return {grade::ok, "open files", "unlimited", ""};
  auto text = std::to_string(*files);
  if (*files >= few_files)
    return {grade::ok, "open files", text, ""};
  return {*files < too_few_files ? grade::problem : grade::warning, "open files",
          text + ": every connection and every running task takes a few",
          "`ulimit -n 65536`; for good, '* - nofile 65536' in "
          "/etc/security/limits.d/troupe.conf, or LimitNOFILE=65536 in a systemd unit"};
}

finding judge_shared_memory(const error& problem) {
  if (!problem)
    return {grade::ok, "shared memory", "memory files can be made and mapped", ""};
  return {grade::problem, "shared memory", problem.text(),
          "allow memfd_create (a seccomp profile may forbid it) and more memory, or use "
          "TROUPE_DEVICE=soft:tcp"};
}

finding judge_peer_reads(const error& problem, std::optional<int> ptrace_scope) {
  if (!problem)
    return {grade::ok, "peer reads", "processes of one user may read each other's memory", ""};
  std::string remedy = "allow process_vm_readv (a container needs the capability SYS_PTRACE or "
                       "another seccomp profile)";
  if (ptrace_scope && *ptrace_scope > 0)
    remedy = "`sysctl kernel.yama.ptrace_scope=0` (it is " + std::to_string(*ptrace_scope) + ")";
  return {grade::warning, "peer reads",
          problem.text() + ": on one host, large messages take one more copy over the soft device",
          remedy};
}

finding judge_spool(const std::string& directory, uint64_t free_bytes, const error& problem) {
  if (problem)
    return {grade::problem, "spool", problem.text(),
            "set [worker] spool to a directory that can be written"};
  auto text = format_size(free_bytes) + " free in " + directory;
  if (free_bytes >= little_space)
    return {grade::ok, "spool", text, ""};
  return {grade::warning, "spool", text + ": what running tasks write is kept there",
          "make room, or set [worker] spool to another directory"};
}

finding judge_config(const std::string& file, const error& config_problem) {
  if (file.empty())
    return {grade::ok, "configuration", "no file; the defaults count", ""};
  if (config_problem)
    return {grade::problem, "configuration", config_problem.text(), "correct " + file};
  return {grade::ok, "configuration", file, ""};
}

std::string report_text(const report& seen, bool colours) {
  constexpr size_t grade_width = 7, subject_width = 13;
  std::string text = "Devices:\n";
  for (auto& device : seen.devices) {
    auto address = device.address.empty() ? "" : " at " + printable(device.address);
    text += "  " + printable(device.name) + address + ": " + printable(device.detail) +
            (device.usable ? "\n" : " (not usable)\n");
  }
  text += "\n";
  for (auto& each : seen.findings) {
    auto head = padded(to_string(each.how), grade_width);
    text += (colours ? paint(head, tint_of(each.how)) : head) + "  " +
            padded(each.subject, subject_width) + "  " + printable_lines(each.text) + "\n";
    if (!each.remedy.empty())
      text += std::string(grade_width + subject_width + 4, ' ') + "mend: " + each.remedy + "\n";
  }
  return text;
}

std::string report_json(const report& seen) {
  using json = nlohmann::ordered_json;
  auto devices = json::array();
  for (auto& device : seen.devices)
    devices.push_back({{"name", device.name},
                       {"usable", device.usable},
                       {"address", device.address},
                       {"detail", device.detail}});
  auto checks = json::array();
  for (auto& each : seen.findings)
    checks.push_back({{"level", to_string(each.how)},
                      {"subject", each.subject},
                      {"text", each.text},
                      {"remedy", each.remedy}});
  json all = {{"devices", devices},
              {"device",
               {{"asked", seen.trial.asked},
                {"name", seen.trial.name},
                {"reason", seen.trial.reason},
                {"error", seen.trial.problem.text()}}},
              {"checks", checks},
              {"usable", seen.trial.usable()}};
  return all.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

} // namespace troupe::cli
