// Waiting for a job and showing how far it is.
#pragma once

#include "protocol.hpp"
#include "reply.hpp"

#include <cstdint>

namespace troupe::cli {

class session;

enum class progress_display : unsigned char {
  none,
  live,  ///< one line on the terminal, replaced as the job goes on
  lines, ///< a line for each change
};

/// Live when people watch, else nothing unless it was `asked` for.
progress_display choose_progress(session& s, bool asked, bool quiet);

/// Waits until the job has ended, however long that takes, or the controller went away, or Ctrl-C.
answer<job_summary> wait_for_job(session& s, uint64_t job, progress_display shown);

} // namespace troupe::cli
