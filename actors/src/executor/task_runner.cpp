#include "troupe/actors/task_runner.hpp"

#include "executor/guardian_process.hpp"
#include "executor/guardian_protocol.hpp"
#include "executor/launch_request.hpp"
#include "executor/spool_file.hpp"
#include "troupe/transport/log.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <deque>
#include <mutex>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unordered_map>

namespace troupe::cluster {

namespace {

// Starts that the guardian has not answered yet. Enough to keep it busy; few enough that neither
// the socket's buffer nor the system's limit of descriptors in flight is ever reached.
constexpr size_t max_unanswered = 32;

struct task_record {
  enum class phase { waiting, requested, running };

  phase now = phase::waiting;
  launch_summary summary;
  std::optional<launch_request> request; // until it is sent
  std::vector<int> early_signals;        // that came before it was sent
  unique_fd standard_output;
  unique_fd standard_error;
  pid_t process = 0;
  uint64_t start_ns = 0;
};

launch_step step_of(guardian::start_step step) {
  switch (step) {
  case guardian::start_step::request:
    return launch_step::request;
  case guardian::start_step::fork:
    return launch_step::fork;
  case guardian::start_step::output:
    return launch_step::output;
  case guardian::start_step::directory:
    return launch_step::directory;
  case guardian::start_step::execute:
    return launch_step::execute;
  }
  return launch_step::request;
}

guardian::request_header signal_request(uint64_t id, int number) {
  guardian::request_header out;
  out.kind = guardian::request_kind::signal;
  out.signal = number;
  out.id = id;
  return out;
}

tl::unexpected<error> lost_already() {
  return fail(errc::disconnected, "the guardian of this runner died; make a new runner");
}

// What is left of a task's group after its guardian died. The leader died with the guardian, or is
// just being killed by its keeper; so this is for the rest, should the keeper have been killed too.
void kill_group(pid_t process) {
  if (process > 1)
    ::kill(-process, SIGKILL);
}

} // namespace

std::string_view to_string(launch_step step) noexcept {
  switch (step) {
  case launch_step::request:
    return "request";
  case launch_step::fork:
    return "fork";
  case launch_step::output:
    return "output";
  case launch_step::directory:
    return "directory";
  case launch_step::execute:
    return "execute";
  }
  return "unknown";
}

// Everything but the descriptors that users wait on; `guard` protects what is below it.
struct task_runner::state {
  state(std::filesystem::path directory, guardian_process child, int epoll)
      : spool(std::move(directory)), ready(epoll), guardian(std::move(child)) {}

  bool watch() {
    epoll_event messages{};
    messages.events = EPOLLIN;
    messages.data.fd = guardian.socket();
    epoll_event death{};
    death.events = EPOLLIN;
    death.data.fd = guardian.pidfd();
    return ::epoll_ctl(ready, EPOLL_CTL_ADD, guardian.socket(), &messages) == 0 &&
           ::epoll_ctl(ready, EPOLL_CTL_ADD, guardian.pidfd(), &death) == 0;
  }

  void flush();
  bool flush_signals();
  bool send(const guardian::request_header& what);
  void wait_for_space(bool wanted);
  bool receive(std::vector<task_event>& events);
  void take(const guardian::reply& what, std::vector<task_event>& events);
  void lose(std::vector<task_event>& events);

  const std::filesystem::path spool;
  const int ready;
  mutable std::mutex guard;
  std::unordered_map<uint64_t, task_record> tasks;
  std::deque<uint64_t> waiting;                      // to be sent, in order
  std::deque<guardian::request_header> signals;      // likewise
  std::optional<guardian::request_header> extension; // the latest
  bool lease_ended = false;
  size_t unanswered = 0;
  bool space_awaited = false;
  bool lost = false;
  guardian_process guardian; // the first to be destroyed
};

// Sends what may be sent now.
void task_runner::state::flush() {
  while (flush_signals() && !waiting.empty() && unanswered < max_unanswered) {
    auto id = waiting.front();
    auto& task = tasks.at(id);
    auto rc = task.request->send(guardian.socket(), task.standard_output.get(),
                                 task.standard_error.get());
    if (rc == EPIPE || rc == ECONNRESET)
      return; // the guardian is dead, as its pidfd is about to tell
    if (rc != 0) {
      wait_for_space(true);
      return;
    }
    waiting.pop_front();
    ++unanswered;
    task.now = task_record::phase::requested;
    task.request.reset();
    for (auto number : task.early_signals)
      signals.push_back(signal_request(id, number));
    task.early_signals = {};
  }
}

// @returns whether all of them, and the extension of the lease, were sent.
bool task_runner::state::flush_signals() {
  if (extension && send(*extension))
    extension.reset();
  while (!extension && !signals.empty() && send(signals.front()))
    signals.pop_front();
  return !extension && signals.empty();
}

bool task_runner::state::send(const guardian::request_header& what) {
  if (::send(guardian.socket(), &what, sizeof what, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
    return true;
  if (errno != EPIPE && errno != ECONNRESET)
    wait_for_space(true);
  return false;
}

void task_runner::state::wait_for_space(bool wanted) {
  if (wanted == space_awaited)
    return;
  epoll_event messages{};
  messages.events = EPOLLIN;
  if (wanted)
    messages.events |= EPOLLOUT;
  messages.data.fd = guardian.socket();
  if (::epoll_ctl(ready, EPOLL_CTL_MOD, guardian.socket(), &messages) == 0)
    space_awaited = wanted;
}

// @returns false when nobody is left at the other end.
bool task_runner::state::receive(std::vector<task_event>& events) {
  for (;;) {
    guardian::reply what;
    auto length = ::recv(guardian.socket(), &what, sizeof what, MSG_DONTWAIT | MSG_TRUNC);
    if (length < 0 && errno == EINTR)
      continue;
    if (length < 0)
      return errno == EAGAIN;
    if (length == 0)
      return false;
    if (length == sizeof what)
      take(what, events);
    else
      log_for("executor")
          ->error("the guardian sent a message of {} bytes, which is ignored", length);
  }
}

void task_runner::state::take(const guardian::reply& what, std::vector<task_event>& events) {
  if (what.kind == guardian::reply_kind::lease_ended) {
    lease_ended = true;
    return;
  }
  auto found = tasks.find(what.id);
  if (found == tasks.end() || found->second.now == task_record::phase::waiting)
    return; // a keeper that was killed after it reported its task's end: told twice
  auto& task = found->second;
  if (task.now == task_record::phase::requested)
    --unanswered;
  task.now = task_record::phase::running;
  switch (what.kind) {
  case guardian::reply_kind::started:
    task.process = what.process;
    task.start_ns = what.start_ns;
    events.push_back(task_started{what.id, what.process, what.start_ns});
    return;
  case guardian::reply_kind::failed: {
    auto step = step_of(what.step);
    events.push_back(task_failed{what.id, step, what.error_number,
                                 explain_failure(task.summary, step, what.error_number)});
    break;
  }
  case guardian::reply_kind::ended: {
    if (what.lingering != 0)
      kill_group(task.process);
    task_ended end;
    end.id = what.id;
    if (what.end == guardian::end_kind::exited)
      end.exit_code = what.value;
    else
      end.signal = what.value;
    end.standard_output = captured_output{std::move(task.standard_output)};
    end.standard_error = captured_output{std::move(task.standard_error)};
    end.start_ns = task.start_ns;
    end.end_ns = what.end_ns;
    end.user_ns = what.user_ns;
    end.system_ns = what.system_ns;
    end.max_resident = what.max_resident;
    end.lingering = what.lingering != 0;
    events.push_back(std::move(end));
    break;
  }
  case guardian::reply_kind::lease_ended:
    break;
  }
  tasks.erase(found);
}

void task_runner::state::lose(std::vector<task_event>& events) {
  guardian_lost event;
  for (auto& [id, task] : tasks) {
    kill_group(task.process);
    event.tasks.push_back(id);
  }
  lost = true;
  tasks.clear();
  waiting.clear();
  signals.clear();
  auto process = guardian.process();
  auto how = guardian.bury();
  auto count = std::to_string(event.tasks.size());
  event.reason =
      lease_ended
          ? error{errc::timeout,
                  "the lease of the " + count + " tasks here ended; they were killed"}
          : error{errc::disconnected, "the guardian (process " + std::to_string(process) + ") " +
                                          how + ": its " + count + " tasks are lost"};
  log_for("executor")->error("{}", event.reason.text());
  events.push_back(std::move(event));
}

task_runner::task_runner(std::unique_ptr<state> inner) : state_(std::move(inner)) {}

task_runner::~task_runner() = default;

result<std::unique_ptr<task_runner>> task_runner::create(task_runner_config config) {
  if (config.guardian.empty()) {
    auto found = find_guardian();
    if (!found)
      return fail(std::move(found.error()));
    config.guardian = std::move(*found);
  }
  // Better now than with the first task.
  if (auto probe = open_spool_file(config.spool); !probe)
    return fail(std::move(probe.error()));
  unique_fd ready{::epoll_create1(EPOLL_CLOEXEC)};
  unique_fd stop{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  if (!ready || !stop)
    return fail(system_error("making a task runner", errno));
  auto child = guardian_process::spawn(config.guardian);
  if (!child)
    return fail(std::move(child.error()));
  auto inner = std::make_unique<state>(std::move(config.spool), std::move(*child), ready.get());
  if (!inner->watch())
    return fail(system_error("watching the guardian", errno));
  std::unique_ptr<task_runner> runner{new task_runner{std::move(inner)}};
  runner->ready_ = std::move(ready);
  runner->stop_ = std::move(stop);
  return runner;
}

status task_runner::start(const task_launch& what) {
  auto request = launch_request::encode(what);
  if (!request)
    return fail(std::move(request.error()));
  auto output = open_spool_file(state_->spool);
  if (!output)
    return fail(std::move(output.error()));
  auto errors = open_spool_file(state_->spool);
  if (!errors)
    return fail(std::move(errors.error()));

  std::lock_guard lock{state_->guard};
  if (state_->lost)
    return lost_already();
  task_record record{task_record::phase::waiting, launch_summary{what}, std::move(*request), {},
                     std::move(*output),          std::move(*errors)};
  if (!state_->tasks.try_emplace(what.id, std::move(record)).second)
    return fail(errc::already_exists,
                "a task with the number " + std::to_string(what.id) + " has not ended yet");
  state_->waiting.push_back(what.id);
  state_->flush();
  return {};
}

status task_runner::signal(uint64_t id, int number) {
  if (number < 1 || number > SIGRTMAX)
    return fail(errc::invalid_argument, "there is no signal " + std::to_string(number));
  std::lock_guard lock{state_->guard};
  auto found = state_->tasks.find(id);
  if (found == state_->tasks.end())
    return fail(errc::not_found, "no task with the number " + std::to_string(id) + " runs here");
  if (found->second.now == task_record::phase::waiting) {
    found->second.early_signals.push_back(number);
    return {};
  }
  state_->signals.push_back(signal_request(id, number));
  state_->flush();
  return {};
}

status task_runner::extend_lease(boot_clock::time_point end) {
  std::lock_guard lock{state_->guard};
  if (state_->lost)
    return lost_already();
  guardian::request_header what;
  what.kind = guardian::request_kind::extend;
  what.lease_end_ns = static_cast<uint64_t>(end.time_since_epoch().count());
  state_->extension = what;
  state_->flush();
  return {};
}

std::vector<task_event> task_runner::poll() {
  std::lock_guard lock{state_->guard};
  std::vector<task_event> events;
  std::array<epoll_event, 2> happened{};
  auto count = ::epoll_wait(ready_.get(), happened.data(), static_cast<int>(happened.size()), 0);
  if (state_->lost || count <= 0)
    return events;
  auto died = false;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i)
    died |= happened[i].data.fd == state_->guardian.pidfd();
  // Tasks that ended before the guardian died have ended.
  auto connected = state_->receive(events);
  if (died || (!connected && !state_->lease_ended)) {
    state_->lose(events);
    return events;
  }
  if (!connected) { // it dies when it has killed the tasks
    ::epoll_ctl(ready_.get(), EPOLL_CTL_DEL, state_->guardian.socket(), nullptr);
    return events;
  }
  state_->wait_for_space(false);
  state_->flush();
  return events;
}

void task_runner::run_events(const std::function<void(task_event)>& deliver) {
  for (;;) {
    pollfd watched[] = {{ready_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    if (::poll(watched, 2, -1) < 0 && errno != EINTR)
      return;
    auto lost = false;
    for (auto& event : poll()) {
      lost |= std::holds_alternative<guardian_lost>(event);
      deliver(std::move(event));
    }
    uint64_t ignored = 0;
    if (lost || ::read(stop_.get(), &ignored, sizeof ignored) == sizeof ignored)
      return;
  }
}

void task_runner::stop() {
  uint64_t one = 1;
  while (::write(stop_.get(), &one, sizeof one) < 0 && errno == EINTR)
    ;
}

size_t task_runner::unfinished() const {
  std::lock_guard lock{state_->guard};
  return state_->tasks.size();
}

pid_t task_runner::guardian() const noexcept {
  return state_->guardian.process();
}

} // namespace troupe::cluster
