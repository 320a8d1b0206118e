// submit.
#include "arguments.hpp"
#include "command_line.hpp"
#include "job_text.hpp"
#include "json.hpp"
#include "session.hpp"
#include "troupe/framework/units.hpp"
#include "waiting.hpp"

#include <CLI/CLI.hpp>
#include <array>
#include <filesystem>
#include <pwd.h>
#include <unistd.h>

namespace troupe::cli {

namespace {

struct submit_options {
  std::string memory;
  std::string array;
  std::vector<std::string> env;
  std::string cwd;
  bool clean_env = false;
  bool wait = false;
  bool quiet = false;
  bool progress = false;
  bool as_json = false;
  submit_request request;
};

std::string user_name() {
  constexpr size_t room = 4096;
  std::array<char, room> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(::getuid(), &entry, buffer.data(), buffer.size(), &found) == 0 && found)
    return found->pw_name;
  return std::to_string(::getuid());
}

/// The directory that tasks start in: `given`, or where we are.
result<std::string> task_directory(const std::string& given) {
  std::error_code problem;
  auto path = std::filesystem::absolute(given.empty() ? "." : given, problem);
  if (problem)
    return fail(errc::system, "cannot tell the current directory: " + problem.message() +
                                  "; give one with --cwd");
  path = path.lexically_normal();
  if (!path.has_filename() && path.has_relative_path())
    path = path.parent_path(); // without the '/' at the end
  return path.string();
}

/// What can be checked without the caller's surroundings.
void complete_request(submit_options& given) {
  auto& request = given.request;
  if (request.argv.empty())
    throw CLI::ValidationError{
        "no command: put it behind '--', as in submit --name test -- COMMAND ARGS"};
  if (request.argv.front().empty())
    throw CLI::ValidationError{"the command is empty"};
  if (request.cpus == 0)
    throw CLI::ValidationError{"--cpus: a task needs at least 1"};
  if (!given.memory.empty()) {
    auto size = parse_size(given.memory);
    if (!size)
      throw CLI::ValidationError{"--mem: " + size.error().text()};
    request.memory = *size;
  }
  if (!given.array.empty()) {
    auto range = parse_index_range(given.array);
    if (!range)
      throw CLI::ValidationError{"--array: " + range.error().text()};
    request.is_array = true;
    request.first = range->first;
    request.last = range->last;
  }
  if (request.name.empty())
    request.name = default_job_name(request.argv.front());
}

int submit(session& s, const submit_options& given) {
  auto request = given.request;
  auto environment = task_environment(
      given.clean_env ? std::vector<std::string>{} : s.environment(), given.env, s.environment());
  auto cwd = task_directory(given.cwd);
  if (!environment || !cwd)
    return s.report({failure::kind::usage, environment ? cwd.error() : environment.error()});
  request.env = std::move(*environment);
  request.cwd = std::move(*cwd);
  request.user = user_name();
  auto job = s.ask(std::move(request));
  if (!job)
    return s.report(job.error());
  auto id = std::to_string(job->job);
  if (!given.as_json)
    s.out().print((given.quiet ? "" : "job ") + id + "\n");
  else if (!given.wait)
    s.out().print(to_text(json_of(*job)));
  if (!given.wait)
    return exit_code::ok;
  auto ended = wait_for_job(s, job->job, choose_progress(s, given.progress, given.quiet));
  if (!ended) {
    auto code = s.report(ended.error());
    if (code == exit_code::interrupted)
      s.out().complain("job " + id + " goes on; `cancel " + id + "` ends it");
    return code;
  }
  if (given.as_json)
    s.out().print(to_text(json_of(*ended)));
  else if (!given.quiet)
    s.out().print(outcome_line(*ended) + "\n");
  return exit_code_of(*ended);
}

} // namespace

void add_submit_command(command_builder& builder) {
  auto given = std::make_shared<submit_options>();
  auto& request = given->request;
  auto& command = builder.add("submit", "Run a command as a job: submit [OPTIONS] -- COMMAND ARGS");
  command.add_option("--name", request.name, "The job's name; else the command's");
  command.add_option("--cpus", request.cpus, "CPUs for each task (1)");
  command.add_option("--mem", given->memory, "Memory for each task, say 512MiB; else not limited")
      ->type_name("SIZE");
  command
      .add_option("--array", given->array,
                  "One task for each index; TROUPE_TASK_INDEX tells a task its own")
      ->type_name("FIRST-LAST");
  command
      .add_option("--env", given->env,
                  "Set a variable of the task, or pass your own (NAME); may be given again. Tasks "
                  "get your whole environment")
      ->type_name("NAME[=VALUE]")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  command.add_flag("--clean-env", given->clean_env, "Pass only what --env says");
  command.add_option("--cwd", given->cwd, "Directory to start in; else the current one")
      ->type_name("DIR");
  command.add_flag("--wait", given->wait, "Wait for the job, and end as it does");
  command.add_flag("--progress", given->progress,
                   "With --wait: tell how far it is, also when standard error is no terminal");
  command.add_flag("-q,--quiet", given->quiet, "Print the job's number and nothing else");
  command.add_flag("--json", given->as_json,
                   "Print JSON: the job's number, or with --wait its end");
  command.callback([&builder, given] {
    given->request.argv = builder.take_behind_dashes();
    complete_request(*given);
    builder.choose([given](session& s) { return submit(s, *given); });
  });
}

} // namespace troupe::cli
