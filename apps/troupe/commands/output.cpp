// output: what tasks wrote, byte for byte.
#include "arguments.hpp"
#include "command_line.hpp"
#include "session.hpp"

#include <CLI/CLI.hpp>

namespace troupe::cli {

namespace {

constexpr uint64_t chunk_bytes = 1024 * 1024;

struct output_options {
  std::string id;
  std::string task_text;
  uint64_t job = 0;
  std::optional<uint64_t> task;
  bool standard_error = false;
  bool all = false;
};

std::string task_of(const output_request& wanted) {
  return "task " + std::to_string(wanted.task) + " of job " + std::to_string(wanted.job);
}

/// Copies one task's output to ours. The next chunk is under way while one is written.
answer<void> copy_output(session& s, output_request wanted) {
  auto connection = s.controller();
  if (!connection)
    return tl::unexpected<failure>(connection.error());
  wanted.most = chunk_bytes;
  auto coming = (*connection)->start(wanted, usual_patience);
  for (;;) {
    coming.wait(std::nullopt, s.stop());
    auto chunk = coming.get();
    if (!chunk)
      return tl::unexpected<failure>(chunk.error());
    if (!chunk->ended)
      return fail_with(failure::kind::cluster,
                       {errc::not_found, task_of(wanted) + " has not ended; its output is there "
                                                           "when it has: see `wait` and `job`"});
    wanted.offset += chunk->bytes.size();
    auto more = wanted.offset < chunk->total;
    if (more && chunk->bytes.empty())
      return fail_with(failure::kind::cluster,
                       {errc::protocol_violation,
                        "the controller gave only " + std::to_string(wanted.offset) + " of the " +
                            std::to_string(chunk->total) + " bytes of " + task_of(wanted)});
    if (more)
      coming = (*connection)->start(wanted, usual_patience);
    auto written = s.out().print({chunk->bytes.data(), chunk->bytes.size()});
    if (!written && s.stop().raised())
      return fail_with(failure::kind::interrupted, {errc::flushed, "interrupted"});
    if (!written || !more)
      return {};
  }
}

/// The tasks that `given` means.
answer<index_range> chosen_tasks(session& s, const output_options& given) {
  if (given.task)
    return index_range{*given.task, *given.task};
  auto job = s.ask(job_request{given.job});
  if (!job)
    return tl::unexpected<failure>(job.error());
  auto& request = job->request;
  if (!request.is_array)
    return index_range{0, 0};
  if (given.all)
    return index_range{request.first, request.last};
  return fail_with(failure::kind::usage,
                   {errc::invalid_argument,
                    "job " + std::to_string(given.job) + " has tasks " +
                        std::to_string(request.first) + " to " + std::to_string(request.last) +
                        ": name one with --task N, or take them all with --all"});
}

int show_output(session& s, const output_options& given) {
  auto tasks = chosen_tasks(s, given);
  if (!tasks)
    return s.report(tasks.error());
  for (auto index = tasks->first;; ++index) {
    output_request wanted;
    wanted.job = given.job;
    wanted.task = index;
    wanted.standard_error = given.standard_error;
    if (auto copied = copy_output(s, wanted); !copied)
      return s.report(copied.error());
    if (index >= tasks->last || !s.out().usable())
      return exit_code::ok;
  }
}

} // namespace

void add_output_command(command_builder& builder) {
  auto given = std::make_shared<output_options>();
  auto& command =
      builder.add("output", "Print what an ended task wrote, byte for byte", operand_kind::job);
  command.add_option("ID", given->id, "The job's number")->required();
  auto task = command.add_option("--task", given->task_text, "The task's index in an array")
                  ->type_name("N");
  command.add_flag("--all", given->all, "All tasks of an array, one after another")->excludes(task);
  command.add_flag("--stderr", given->standard_error, "What it wrote to standard error");
  command.callback([&builder, given] {
    auto job = parse_number(given->id, "a job id");
    if (!job)
      throw CLI::ValidationError{job.error().text()};
    given->job = *job;
    if (!given->task_text.empty()) {
      auto task_index = parse_number(given->task_text, "the index of a task");
      if (!task_index)
        throw CLI::ValidationError{"--task: " + task_index.error().text()};
      given->task = *task_index;
    }
    builder.choose([given](session& s) { return show_output(s, *given); });
  });
}

} // namespace troupe::cli
