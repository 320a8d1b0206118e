// jobs, job, cancel.
#include "arguments.hpp"
#include "command_line.hpp"
#include "format.hpp"
#include "job_text.hpp"
#include "json.hpp"
#include "session.hpp"

#include <CLI/CLI.hpp>

namespace troupe::cli {

namespace {

int show_jobs(session& s, bool as_json) {
  auto jobs = s.ask(list_jobs_request{});
  if (!jobs)
    return s.report(jobs.error());
  s.out().print(as_json ? to_text(json_of(*jobs)) : job_table(*jobs, s.out().colours()));
  return exit_code::ok;
}

int show_job(session& s, uint64_t id, bool as_json) {
  auto job = s.ask(job_request{id});
  if (!job)
    return s.report(job.error());
  s.out().print(as_json ? to_text(json_of(*job)) : job_page(*job, s.out().colours()));
  return exit_code::ok;
}

int cancel_job(session& s, uint64_t id, bool as_json) {
  auto job = s.ask(cancel_request{id});
  if (!job)
    return s.report(job.error());
  s.out().print(as_json ? to_text(json_of(*job)) : cancel_line(*job) + "\n");
  return exit_code::ok;
}

void add_job_command(command_builder& builder, const std::string& name, const std::string& help,
                     int (*run)(session&, uint64_t, bool)) {
  struct options {
    std::string id;
    bool as_json = false;
  };
  auto given = std::make_shared<options>();
  auto& command = builder.add(name, help, operand_kind::job);
  command.add_option("ID", given->id, "The job's number")->required();
  command.add_flag("--json", given->as_json, "Print JSON");
  command.callback([&builder, given, run] {
    auto id = parse_number(given->id, "a job id");
    if (!id)
      throw CLI::ValidationError{id.error().text()};
    builder.choose([=, job = *id](session& s) { return run(s, job, given->as_json); });
  });
}

} // namespace

void add_job_commands(command_builder& builder) {
  auto as_json = std::make_shared<bool>(false);
  auto& jobs = builder.add("jobs", "List the jobs, oldest first");
  jobs.add_flag("--json", *as_json, "Print JSON");
  jobs.callback([&builder, as_json] {
    builder.choose([as_json](session& s) { return show_jobs(s, *as_json); });
  });
  add_job_command(builder, "job", "Tell about a job and each of its tasks", show_job);
  add_job_command(builder, "cancel", "End a job: kill what runs of it, forget the rest",
                  cancel_job);
}

} // namespace troupe::cli
