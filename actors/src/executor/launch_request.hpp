// A task to start, in the form in which the guardian takes it.
#pragma once

#include "executor/guardian_protocol.hpp"
#include "troupe/actors/task_runner.hpp"

#include <vector>

namespace troupe::cluster {

/// An encoded `task_launch`. Long ones hold a file descriptor.
class launch_request {
public:
  /// Checks and encodes `what`.
  /// @returns `errc::invalid_argument`, or why no memory file could be made.
  static result<launch_request> encode(const task_launch& what);

  /// Sends itself with the files that become standard output and error, without waiting.
  /// @returns 0 or errno; EAGAIN when the socket is full.
  int send(int socket, int standard_output, int standard_error) const;

private:
  guardian::request_header header_;
  std::vector<char> body_; // empty when it is in `memory_`
  unique_fd memory_;
};

/// What is kept of a launch to explain a failure.
struct launch_summary {
  explicit launch_summary(const task_launch& what);

  std::string program;
  std::string directory;
  std::optional<std::string> search_path; ///< PATH of its environment
  size_t bytes = 0;                       ///< of arguments and environment
};

/// Why a task could not be started, in words for people.
error explain_failure(const launch_summary& what, launch_step step, int error_number);

} // namespace troupe::cluster
