// A process that answers like a controller, with answers that the tests know.
#pragma once

#include "support/child_process.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace cli_test {

/// Jobs that it has.
constexpr uint64_t good_job = 12;      ///< succeeded; task 0 wrote `known_output()`
constexpr uint64_t bad_job = 13;       ///< failed with exit status 3
constexpr uint64_t endless_job = 14;   ///< runs; its end never comes
constexpr uint64_t array_job = 15;     ///< tasks 1 to 3, each wrote "task N"
constexpr uint64_t submitted_job = 99; ///< what was submitted last

/// Some megabytes of every byte there is, without a line end.
std::string known_output();

/// Serves on 127.0.0.1:`port` over `device` until killed or shut down; prints the port.
/// @returns the process's exit code.
int serve(const std::string& device, uint16_t port);

/// The process.
class controller {
public:
  /// `port` 0: any.
  explicit controller(const std::string& device, uint16_t port = 0);

  uint16_t port() const noexcept { return port_; }

  /// "TROUPE_CONTROLLER=...", for a client.
  std::string variable() const;

  support::child_process& process() { return *process_; }

private:
  std::unique_ptr<support::child_process> process_;
  uint16_t port_ = 0;
};

} // namespace cli_test
