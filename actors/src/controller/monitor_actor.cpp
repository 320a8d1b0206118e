#include "controller/monitor_actor.hpp"

#include "troupe/framework/errors.hpp"
#include "troupe/transport/log.hpp"

#include <caf/send.hpp>
#include <sstream>
#include <utility>

namespace troupe::cluster {

caf::behavior monitor::make_behavior() {
  self_->send(self_, monitor_tick{});
  return {
      [this](report_to& what) { reports_to_ = std::move(what.whom); },
      [this](const worker_added& what) {
        workers_.emplace(what.node, watched{what.id, what.port, {}});
      },
      [this](const worker_removed& what) { workers_.erase(what.node); },
      [this](monitor_tick) {
        read_all();
        self_->delayed_send(self_, interval_, monitor_tick{});
      },
      [this](page_read& page) { on_page(page); },
      [this](const command_request& request) { return command(request.words); },
  };
}

void monitor::read_all() {
  auto me = caf::actor_cast<caf::actor>(self_);
  for (auto& [node, worker] : workers_)
    worker.port->read_state([me, id = node](result<std::vector<std::byte>> bytes) {
      caf::anon_send(me, page_read{id, std::move(bytes)});
    });
}

void monitor::on_page(page_read& page) {
  auto found = workers_.find(page.node);
  if (found == workers_.end())
    return;
  auto& worker = found->second;
  if (!page.bytes) {
    log_for("monitor")->debug("state page of {}: {}", worker.id, page.bytes.error().text());
    return;
  }
  auto state = read_snapshot(*page.bytes);
  if (!state) {
    log_for("monitor")->debug("state page of {}: {}", worker.id, state.error().text());
    return;
  }
  auto fresh = !worker.read_once || state->epoch != worker.last.epoch;
  worker.read_once = true;
  worker.last = *state;
  ++worker.reads;
  worker.stale = fresh ? 0 : worker.stale + 1;
  if (reports_to_)
    self_->send(reports_to_, state_seen{page.node, fresh, *state});
}

caf::result<std::string> monitor::command(const std::vector<std::string>& words) const {
  if (words.empty() || words[0] != "state" || words.size() > 2)
    return to_caf({errc::invalid_argument, "the monitor accepts: state [NODE]"});
  std::ostringstream out;
  for (auto& [node, worker] : workers_) {
    if (words.size() == 2 && words[1] != worker.id)
      continue;
    auto& last = worker.last;
    if (out.tellp() > 0)
      out << '\n';
    out << worker.id << ": epoch " << last.epoch << ", " << last.running_tasks << " running, "
        << last.finished_tasks << " finished, cpu " << last.cpu_busy_permille / 10 << " %, "
        << (last.memory_available >> 20) << " MiB free; page read " << worker.reads << " times";
    if (worker.stale > 0)
      out << ", unchanged for " << worker.stale;
  }
  if (words.size() == 2 && out.tellp() <= 0)
    return to_caf({errc::not_found, "no worker named '" + words[1] + "' is connected"});
  return out.str();
}

} // namespace troupe::cluster
