#include "job_text.hpp"

#include "format.hpp"
#include "table.hpp"
#include "troupe/framework/units.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::cli {

namespace {

uint64_t done_tasks(const job_summary& job) {
  return job.succeeded + job.failed + job.cancelled;
}

std::string age_or_none(uint64_t milliseconds) {
  return milliseconds == 0 ? "-" : format_age(milliseconds);
}

std::string task_table(const std::vector<task_summary>& tasks, bool colours) {
  table shown{{{"TASK", true},
               {"STATE"},
               {"NODE"},
               {"ATTEMPT", true},
               {"TIME", true},
               {"STDOUT", true},
               {"STDERR", true},
               {"END"}}};
  for (auto& task : tasks)
    shown.add({{std::to_string(task.index)},
               {task.state, tint_of_state(task.state)},
               {task.node},
               {std::to_string(task.attempt)},
               {age_or_none(task.run_ms)},
               {format_size(task.stdout_bytes)},
               {format_size(task.stderr_bytes)},
               {end_of_task(task)}});
  return shown.render(colours);
}

} // namespace

std::string end_of_task(const task_summary& task) {
  if (!task.reason.empty())
    return task.reason;
  if (task.signal != 0) {
    auto name = ::strsignal(task.signal);
    return "signal " + std::to_string(task.signal) + (name ? " (" + std::string{name} + ")" : "");
  }
  return task.exit_code < 0 ? "" : "exit " + std::to_string(task.exit_code);
}

std::string job_table(const std::vector<job_summary>& jobs, bool colours) {
  table shown{{{"JOB", true},
               {"NAME"},
               {"USER"},
               {"STATE"},
               {"DONE", true},
               {"RUNNING", true},
               {"FAILED", true},
               {"RESTARTS", true},
               {"AGE", true},
               {"TIME", true},
               {"WAITING FOR"}}};
  for (auto& job : jobs)
    shown.add({{std::to_string(job.id)},
               {job.name},
               {job.user},
               {job.state, tint_of_state(job.state)},
               {std::to_string(done_tasks(job)) + "/" + std::to_string(job.tasks)},
               {std::to_string(job.running)},
               {std::to_string(job.failed), job.failed > 0 ? tint::bad : tint::none},
               {std::to_string(job.restarts)},
               {format_age(job.age_ms)},
               {age_or_none(job.run_ms)},
               {job.waiting}});
  return shown.render(colours);
}

std::string job_page(const job_details& job, bool colours) {
  auto& summary = job.summary;
  auto& request = job.request;
  std::string text;
  auto line = [&](std::string_view key, const std::string& value) {
    constexpr size_t key_width = 10;
    std::string padded{key};
    padded += ':';
    padded.resize(key_width, ' ');
    text += padded + " " + value + "\n";
  };
  auto state = colours ? paint(printable(summary.state), tint_of_state(summary.state))
                       : printable(summary.state);
  line("job", std::to_string(summary.id) + " (" + printable(summary.name) + ")");
  line("state", state + (summary.waiting.empty() ? "" : ": " + printable(summary.waiting)));
  line("user", printable(summary.user));
  line("command", printable(join_words(request.argv)));
  line("directory", printable(request.cwd));
  line("each task", format_count(request.cpus, "CPU") +
                        (request.memory > 0 ? ", " + format_size(request.memory) : ""));
  if (request.is_array)
    line("array", std::to_string(request.first) + "-" + std::to_string(request.last));
  line("tasks", std::to_string(summary.tasks) + ": " + std::to_string(summary.queued) +
                    " queued, " + std::to_string(summary.running) + " running, " +
                    std::to_string(summary.succeeded) + " succeeded, " +
                    std::to_string(summary.failed) + " failed, " +
                    std::to_string(summary.cancelled) + " cancelled; " +
                    format_count(summary.restarts, "restart"));
  line("age", format_age(summary.age_ms));
  line("time", age_or_none(summary.run_ms));
  if (!job.tasks.empty())
    text += "\n" + task_table(job.tasks, colours);
  return text;
}

std::string outcome_line(const job_summary& job) {
  auto text = "job " + std::to_string(job.id) + " " + printable(job.state);
  if (job.state == "succeeded")
    return text + ": " + format_count(job.tasks, "task") + " in " + format_age(job.run_ms);
  if (job.state == "failed") {
    constexpr int not_run = 125; // a status that no program has given
    return text + ": " + std::to_string(job.failed) + " of " + format_count(job.tasks, "task") +
           " failed, exit status " + std::to_string(job.exit_status) +
           (job.exit_status == not_run ? "; `job " + std::to_string(job.id) + "` tells why" : "");
  }
  return text + ": " + std::to_string(job.succeeded) + " of " + format_count(job.tasks, "task") +
         " had succeeded";
}

std::string cancel_line(const job_summary& job) {
  auto text = "job " + std::to_string(job.id) + " is ";
  if (job.running == 0)
    return text + printable(job.state);
  return text + "being cancelled: " + format_count(job.running, "task") +
         (job.running == 1 ? " still runs" : " still run");
}

std::string progress_line(const job_summary& job) {
  auto text = "job " + std::to_string(job.id) + ": " + std::to_string(done_tasks(job)) + " of " +
              format_count(job.tasks, "task") + " done";
  auto add = [&](uint64_t count, std::string_view what) {
    if (count > 0)
      text += ", " + std::to_string(count) + " " + std::string{what};
  };
  add(job.running, "running");
  add(job.failed, "failed");
  add(job.restarts, "restarted");
  if (job.running == 0 && !job.waiting.empty())
    text += "; " + printable(job.waiting);
  return text;
}

int exit_code_of(const job_summary& job) {
  constexpr int least_failure = 1, most = 255;
  if (job.state == "succeeded")
    return 0;
  return std::clamp(job.exit_status, least_failure, most);
}

} // namespace troupe::cli
