#include "troupe/actors/job.hpp"

#include <algorithm>

namespace troupe::cluster {

namespace {

bool has_nul(std::string_view text) {
  return text.find('\0') != std::string_view::npos;
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return (c >= 0 && c < ' ') || c == 127; });
}

} // namespace

status check_command(const std::vector<std::string>& argv, const std::vector<std::string>& env,
                     const std::string& cwd) {
  auto invalid = [](std::string text) { return fail(errc::invalid_argument, std::move(text)); };
  if (argv.empty() || argv.front().empty())
    return invalid("there is no command; write it behind --");
  if (!cwd.empty() && cwd.front() != '/')
    return invalid("the working directory '" + cwd + "' is not an absolute path");
  if (has_nul(cwd))
    return invalid("the working directory cannot contain a zero byte");
  size_t bytes = cwd.size() + 1;
  for (auto* list : {&argv, &env})
    for (auto& text : *list) {
      if (has_nul(text))
        return invalid("arguments and variables cannot contain a zero byte");
      bytes += text.size() + 1;
    }
  for (auto& variable : env)
    if (auto equals = variable.find('='); equals == 0 || equals == std::string::npos)
      return invalid("the variable '" + variable + "' is not of the form NAME=value");
  if (bytes > max_command_bytes)
    return invalid("arguments and variables take " + std::to_string(bytes) +
                   " bytes; at most 1048576 are allowed. Put them into a file");
  return {};
}

status check(const job_spec& spec) {
  auto invalid = [](const std::string& text) {
    return fail(errc::invalid_argument, "cannot submit: " + text);
  };
  if (auto sound = check_command(spec.argv, spec.env, spec.cwd); !sound)
    return invalid(sound.error().text());
  if (spec.cpus == 0)
    return invalid("a task needs at least 1 CPU");
  if (spec.name.size() > 255 || has_control(spec.name))
    return invalid("a job's name has at most 255 bytes and no control characters");
  if (spec.user.size() > 255 || has_control(spec.user))
    return invalid("a user's name has at most 255 bytes and no control characters");
  auto range = spec.tasks();
  if (range.first > range.last)
    return invalid("the array " + std::to_string(range.first) + '-' + std::to_string(range.last) +
                   " is inverted");
  if (spec.task_count() > max_tasks_per_job)
    return invalid("the array has " + std::to_string(spec.task_count()) +
                   " tasks; a job may have 1000000");
  return {};
}

std::string_view to_string(run_state state) noexcept {
  switch (state) {
  case run_state::queued:
    return "queued";
  case run_state::running:
    return "running";
  case run_state::succeeded:
    return "succeeded";
  case run_state::failed:
    return "failed";
  case run_state::cancelled:
    return "cancelled";
  }
  return "unknown";
}

int task_outcome::exit_status() const noexcept {
  if (success())
    return 0;
  if (signal > 0)
    return 128 + std::min(signal, 127);
  if (exit_code > 0)
    return std::min(exit_code, 255);
  return 125;
}

} // namespace troupe::cluster
