#include "controller.hpp"

#include "troupe/actors/messages.hpp"
#include "troupe/framework/errors.hpp"
#include "troupe/transport/middleman.hpp"

#include <algorithm>
#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/settings.hpp>
#include <caf/stateful_actor.hpp>
#include <cstdio>

namespace cli_test {

namespace {

using namespace troupe::cluster;

struct books {
  submit_request submitted;
};

caf::error no_job(uint64_t id) {
  return troupe::to_caf(
      troupe::error{troupe::errc::not_found, "there is no job " + std::to_string(id)});
}

job_summary job_of(uint64_t id) {
  job_summary job;
  job.id = id;
  job.name = "job\x1b[31m";
  job.tasks = id == array_job ? 3 : 1;
  job.state = "succeeded";
  job.succeeded = job.tasks;
  if (id == bad_job) {
    job.state = "failed";
    job.succeeded = 0;
    job.failed = 1;
    job.exit_status = 3;
  }
  if (id == endless_job) {
    job.state = "running";
    job.succeeded = 0;
    job.running = 1;
  }
  return job;
}

bool is_job(uint64_t id) {
  return (id >= good_job && id <= array_job) || id == submitted_job;
}

std::string output_of(const output_request& wanted) {
  if (wanted.job == array_job)
    return "task " + std::to_string(wanted.task);
  if (wanted.standard_error)
    return "complaints\n";
  static const auto known = known_output();
  return known;
}

caf::result<output_chunk> chunk_of(const output_request& wanted) {
  auto known_task =
      wanted.job == array_job ? wanted.task >= 1 && wanted.task <= 3 : wanted.task == 0;
  if (!is_job(wanted.job) || !known_task)
    return no_job(wanted.job);
  output_chunk chunk;
  if (wanted.job == endless_job)
    return chunk;
  auto all = output_of(wanted);
  auto from = std::min<uint64_t>(wanted.offset, all.size());
  auto bytes = std::min<uint64_t>(wanted.most, all.size() - from);
  chunk.bytes.assign(all.data() + from, all.data() + from + bytes);
  chunk.total = all.size();
  chunk.ended = true;
  return chunk;
}

caf::behavior stand_in(caf::stateful_actor<books>* self) {
  return {
      [](info_request) {
        return cluster_info{"1.2.3", "head", "soft", "asked for", 61'000};
      },
      [](list_nodes_request) {
        node_summary node;
        node.id = "worker\n1";
        node.state = "alive";
        node.roles = {"worker"};
        node.cpus = 4;
        node.cpus_granted = 1;
        return std::vector<node_summary>{node};
      },
      [](list_actors_request) {
        return std::vector<std::string>{"scheduler", "storage", "gr\u00f6\u00dfe"};
      },
      [](list_jobs_request) {
        return std::vector<job_summary>{job_of(good_job), job_of(endless_job)};
      },
      [self](const job_request& wanted) -> caf::result<job_details> {
        if (!is_job(wanted.job))
          return no_job(wanted.job);
        job_details details;
        details.summary = job_of(wanted.job);
        if (wanted.job == submitted_job)
          details.request = self->state.submitted;
        if (wanted.job == array_job) {
          details.request.is_array = true;
          details.request.first = 1;
          details.request.last = 3;
        }
        return details;
      },
      [self](wait_request wanted) -> caf::result<job_summary> {
        if (!is_job(wanted.job))
          return no_job(wanted.job);
        if (wanted.job == endless_job)
          return self->make_response_promise();
        return job_of(wanted.job);
      },
      [](const output_request& wanted) { return chunk_of(wanted); },
      [](cancel_request wanted) -> caf::result<job_summary> {
        if (!is_job(wanted.job))
          return no_job(wanted.job);
        auto job = job_of(wanted.job);
        job.state = "cancelled";
        return job;
      },
      [self](const submit_request& wanted) {
        self->state.submitted = wanted;
        return submitted{submitted_job};
      },
      [self](const command_request& wanted) -> caf::result<std::string> {
        if (wanted.actor == "silent")
          return self->make_response_promise();
        std::string answer = wanted.actor;
        for (auto& word : wanted.words)
          answer += "|" + word;
        return answer;
      },
      [self](shutdown_request) { self->quit(); },
  };
}

} // namespace

std::string known_output() {
  std::string bytes(3 * 1024 * 1024 + 7, '\0');
  uint32_t value = 4747;
  for (auto& byte : bytes) {
    value = value * 1664525 + 1013904223;
    byte = static_cast<char>(value >> 24);
  }
  bytes.back() = 'x';
  return bytes;
}

int serve(const std::string& device, uint16_t port) {
  caf::actor_system_config config;
  config.load<troupe::transport::middleman>();
  caf::put(config.content, "troupe.device", device);
  add_message_types(config);
  caf::actor_system system{config};
  auto actor = system.spawn(stand_in);
  auto published = system.middleman().publish(actor, port, "127.0.0.1", true);
  if (!published) {
    std::fprintf(stderr, "%s\n", system.render(published.error()).c_str());
    return 1;
  }
  std::printf("%u\n", unsigned{*published});
  std::fflush(stdout);
  actor = nullptr;
  system.await_all_actors_done();
  return 0;
}

controller::controller(const std::string& device, uint16_t port) {
  support::launch how;
  how.argv = {support::this_executable(), "--serve", device, std::to_string(port)};
  how.captures_errors = false;
  process_ = std::make_unique<support::child_process>(how);
  port_ = static_cast<uint16_t>(std::stoul(process_->line()));
}

std::string controller::variable() const {
  return "TROUPE_CONTROLLER=127.0.0.1:" + std::to_string(port_);
}

} // namespace cli_test
