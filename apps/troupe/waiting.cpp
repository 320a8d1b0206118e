#include "waiting.hpp"

#include "job_text.hpp"
#include "session.hpp"

namespace troupe::cli {

namespace {

constexpr std::chrono::milliseconds progress_interval{250};

} // namespace

progress_display choose_progress(session& s, bool asked, bool quiet) {
  if (quiet)
    return progress_display::none;
  if (s.out().errors_are_terminal())
    return progress_display::live;
  return asked ? progress_display::lines : progress_display::none;
}

answer<job_summary> wait_for_job(session& s, uint64_t job, progress_display shown) {
  auto connection = s.controller();
  if (!connection)
    return tl::unexpected<failure>(connection.error());
  auto coming = (*connection)->start(wait_request{job}, std::nullopt);
  if (shown == progress_display::none)
    coming.wait(std::nullopt, s.stop());
  std::string last;
  while (!coming.wait(progress_interval, s.stop())) {
    auto now = (*connection)->ask(job_request{job}, usual_patience, s.stop());
    auto line = now ? progress_line(now->summary) : last; // the wait itself ends with the error
    if (line == last)
      continue;
    last = line;
    if (shown == progress_display::live)
      s.out().progress(line);
    else
      s.out().note(line + "\n");
  }
  s.out().progress({});
  return coming.get();
}

} // namespace troupe::cli
