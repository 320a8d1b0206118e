// Jobs as people read them. Plain functions.
#pragma once

#include "protocol.hpp"

#include <string>
#include <vector>

namespace troupe::cli {

/// A job a line.
std::string job_table(const std::vector<job_summary>& jobs, bool colours);

/// All about a job, with a table of its tasks.
std::string job_page(const job_details& job, bool colours);

/// What became of the job: "job 12 succeeded: 60 tasks in 3.2s", "job 12 failed: 2 of 60 tasks
/// failed, exit status 3". Without a line end.
std::string outcome_line(const job_summary& job);

/// What cancelling did: "job 12 is cancelled", "job 12 is being cancelled: 3 tasks still run".
/// Without a line end.
std::string cancel_line(const job_summary& job);

/// How far it is: "job 12: 34 of 60 tasks done, 6 running, 1 restarted". Without a line end.
std::string progress_line(const job_summary& job);

/// How a task ended: "exit 3", "signal 9 (Killed)", a reason, or "" while it has not.
std::string end_of_task(const task_summary& task);

/// What the program ends with when the job did: 0 to 255, and 0 only when it succeeded.
int exit_code_of(const job_summary& job);

} // namespace troupe::cli
