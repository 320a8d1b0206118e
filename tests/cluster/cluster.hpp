// A real cluster on this machine: trouped processes, and the commands of troupe.
#pragma once

#include "support/child_process.hpp"
#include "surroundings.hpp"

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace cluster_test {

using nlohmann::json;
using support::await;
using support::ending;
using process = support::child_process;
using words = std::vector<std::string>;

/// Ends all that it started, and checks that neither a process nor a file is left.
class cluster {
public:
  cluster();
  ~cluster();
  cluster(const cluster&) = delete;
  cluster& operator=(const cluster&) = delete;

  // -- nodes

  /// Starts a controller, without a worker's role, and waits until it listens. Its leases are long
  /// unless told otherwise. `port`: 0 for any.
  process& start_controller(const words& flags = {}, uint16_t port = 0);

  /// Starts a worker, with 2 CPUs unless told otherwise; does not wait.
  process& start_worker(const std::string& id, const words& flags = {});

  /// Likewise, and waits until it takes tasks.
  process& join_worker(const std::string& id, const words& flags = {});

  /// Starts trouped with exactly these flags (and the spool directory of this cluster).
  process& start_node(const words& flags);

  /// Waits until `node` has told where it listens; commands go there from then on.
  void adopt_address(const process& node);

  const std::string& address() const noexcept { return address_; }
  uint16_t port() const;

  // -- commands

  /// Runs `troupe` to its end, in the scratch directory.
  ending troupe(const words& arguments) const;

  /// Starts it.
  std::unique_ptr<process> start_troupe(const words& arguments) const;

  /// Runs a command that must end with 0. @returns what it printed.
  std::string ask(const words& arguments) const;
  json ask_json(words arguments) const;

  /// Submits a job. `options` stand before the command. @returns its id.
  std::string submit(const words& options, const words& command) const;

  /// `wait`s for a job. @returns the exit status.
  int wait(const std::string& job) const;

  std::string output(const std::string& job, int task = 0) const;
  std::string errors(const std::string& job, int task = 0) const;

  /// Of `job ID --json`.
  json summary(const std::string& job) const;
  json tasks(const std::string& job) const;

  /// The live node of that id, of `nodes --json`; null when there is none.
  json live_node(const std::string& id) const;

  /// Waits until `count` tasks of the job run, with their processes.
  void await_running(const std::string& job, uint64_t count) const;

  // -- what is on this machine

  const std::filesystem::path& scratch() const noexcept { return scratch_.path(); }

  /// The environment of the programs.
  std::vector<std::string> environment() const;

  /// How to start a program in it, in a process group of its own.
  support::launch launch(words argv, const std::filesystem::path& directory = "/") const;

  /// Processes of tasks, of one node or of all.
  std::vector<pid_t> task_processes(const std::string& node = {}) const;

  /// Waits until no task's process is left, of one node or of all.
  void await_no_tasks(const std::string& node = {}) const;

  /// Ends everything, with SIGKILL what does not by itself, and waits until no process is left.
  void clear();

private:
  scratch_directory scratch_;
  scratch_directory spool_;
  std::string mark_;
  std::string address_;
  std::vector<std::unique_ptr<process>> nodes_;
};

/// Whether `text` contains `what`; both are shown when not.
bool has(const std::string& text, std::string_view what);

} // namespace cluster_test
