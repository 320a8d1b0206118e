// `troupe doctor`: what of this machine stands in Troupe's way. What is found is judged here, by
// plain functions; doctor_probe.hpp looks.
#pragma once

#include "troupe/transport/error.hpp"
#include "troupe/transport/open_device.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::cli {

enum class grade : uint8_t { ok, warning, problem };

/// "ok", "warning" or "problem".
std::string_view to_string(grade value) noexcept;

/// One line of the report.
struct finding {
  grade how = grade::ok;
  std::string subject; ///< "device", "memlock" ...
  std::string text;    ///< what there is and what it means
  std::string remedy;  ///< how to mend it; empty when there is nothing to

  bool operator==(const finding&) const = default;
};

/// A limit of the system, in units of its own; `std::nullopt` means unlimited.
using system_limit = std::optional<uint64_t>;

/// How the device that would be used did.
struct device_trial {
  std::string asked;  ///< "auto", "verbs:rxe0" ...
  std::string name;   ///< of the opened one; empty when none could be opened
  std::string reason; ///< why this one
  error problem;      ///< of opening it or of using its memory

  bool usable() const noexcept { return !name.empty() && !problem; }
};

/// What `doctor` saw.
struct report {
  std::vector<transport::device_candidate> devices;
  device_trial trial;
  std::vector<finding> findings;
};

/// Memory that the trial registers, and that adapters must be allowed to lock.
constexpr uint64_t trial_bytes = 64ULL * 1024 * 1024;

finding judge_device(const device_trial& trial);

/// The cluster's key in `file`, if not empty. `problem`: why it cannot be used; `none` when it can.
/// `has_adapter`: whether an RDMA device was found, which is of no use without a key.
finding judge_key(const std::string& file, const error& problem, bool has_adapter);

/// `has_adapter`: whether an RDMA device, which locks memory, was found.
finding judge_memlock(system_limit bytes, bool has_adapter);

finding judge_open_files(system_limit files);

/// `problem`: why no shared memory could be made; `none` when it could.
finding judge_shared_memory(const error& problem);

/// Whether a process may read another one's memory. `ptrace_scope` is the kernel's setting, where
/// it has one.
finding judge_peer_reads(const error& problem, std::optional<int> ptrace_scope);

/// Room for what tasks write. `problem`: why `directory` cannot be used; `none` when it can.
finding judge_spool(const std::string& directory, uint64_t free_bytes, const error& problem);

/// `config_problem`: what is wrong with the configuration `file`; `none` when nothing is.
finding judge_config(const std::string& file, const error& config_problem);

/// The report for people, and for programs.
std::string report_text(const report& seen, bool colours);
std::string report_json(const report& seen);

} // namespace troupe::cli
