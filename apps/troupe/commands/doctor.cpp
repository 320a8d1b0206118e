// doctor.
#include "command_line.hpp"
#include "doctor_probe.hpp"
#include "session.hpp"

#include <CLI/CLI.hpp>

namespace troupe::cli {

void add_doctor_command(command_builder& builder) {
  auto as_json = std::make_shared<bool>(false);
  auto& command = builder.add(
      "doctor", "Tell which device this machine would use, and what stands in the way of it");
  command.add_flag("--json", *as_json, "Print JSON");
  command.callback([&builder, as_json] {
    builder.choose([as_json](session& s) {
      auto seen = examine_machine(s.options(), s.device(), s.environment());
      s.out().print(*as_json ? report_json(seen) : report_text(seen, s.out().colours()));
      return seen.trial.usable() ? exit_code::ok : exit_code::refused;
    });
  });
}

} // namespace troupe::cli
