// wait.
#include "arguments.hpp"
#include "command_line.hpp"
#include "job_text.hpp"
#include "json.hpp"
#include "session.hpp"
#include "waiting.hpp"

#include <CLI/CLI.hpp>

namespace troupe::cli {

namespace {

struct wait_options {
  std::vector<std::string> ids;
  std::vector<uint64_t> jobs;
  bool quiet = false;
  bool progress = false;
  bool as_json = false;
};

int wait_for(session& s, const wait_options& given) {
  std::vector<job_summary> ended;
  auto worst = exit_code::ok;
  for (auto id : given.jobs) {
    auto shown = choose_progress(s, given.progress, given.quiet);
    auto job = wait_for_job(s, id, shown);
    if (!job)
      return s.report(job.error());
    if (!given.quiet && !given.as_json)
      s.out().print(outcome_line(*job) + "\n");
    if (worst == exit_code::ok)
      worst = exit_code_of(*job);
    ended.push_back(std::move(*job));
  }
  if (given.as_json)
    s.out().print(to_text(json_of(ended)));
  return worst;
}

} // namespace

void add_wait_command(command_builder& builder) {
  auto given = std::make_shared<wait_options>();
  auto& command =
      builder.add("wait", "Wait for jobs; ends with the outcome of the first that did not succeed",
                  operand_kind::job);
  command.add_option("ID", given->ids, "The jobs' numbers")->required();
  command.add_flag("-q,--quiet", given->quiet, "Print nothing");
  command.add_flag("--progress", given->progress,
                   "Tell how far it is on standard error, also when that is no terminal");
  command.add_flag("--json", given->as_json, "Print the ended jobs as a JSON array");
  command.callback([&builder, given] {
    for (auto& text : given->ids) {
      auto id = parse_number(text, "a job id");
      if (!id)
        throw CLI::ValidationError{id.error().text()};
      given->jobs.push_back(*id);
    }
    builder.choose([given](session& s) { return wait_for(s, *given); });
  });
}

} // namespace troupe::cli
