// The scheduler's views of jobs and tasks as they are sent to the command line. Internal.
#pragma once

#include "troupe/actors/job.hpp"
#include "troupe/actors/messages.hpp"

namespace troupe::cluster {

/// `info` at the time `now`.
job_summary summarize(const job_info& info, wall_time now);

/// `info` at the time `now`.
task_summary summarize(const task_info& info, wall_time now);

/// What was asked for; `errc::invalid_argument` for what no `job_spec` can say.
result<job_spec> to_spec(submit_request request);

/// The reverse, to show it.
submit_request to_request(const job_spec& spec);

} // namespace troupe::cluster
