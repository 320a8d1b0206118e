#include "keeper.hpp"

#include "processes.hpp"

#include <cerrno>
#include <csignal>
#include <ctime>
#include <string>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::guardian {

namespace {

using namespace cluster::guardian;

// After this long the end is reported although some process has not died of SIGKILL: it hangs in
// the kernel, or runs with other rights.
constexpr uint64_t patience_ns = 10'000'000'000;

// How often to look for new children while killing; a death wakes the keeper anyway.
constexpr long sweep_ns = 100'000'000;

struct start_failure {
  start_step step = start_step::fork;
  int number = 0;
};

// Runs in the memory of the suspended keeper. Returns only if the task cannot be started.
start_failure become_task(const task& what, const std::vector<std::string>& candidates,
                          pid_t keeper) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != keeper)
    return {start_step::fork, ESRCH};
  if (::dup2(what.output, STDOUT_FILENO) < 0 || ::dup2(what.errors, STDERR_FILENO) < 0)
    return {start_step::output, errno};
  if (*what.directory != '\0' && ::chdir(what.directory) != 0)
    return {start_step::directory, errno};
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  int number = ENOENT;
  for (auto& file : candidates) {
    ::execve(file.c_str(), what.arguments.data(), what.environment.data());
    switch (errno) {
    case EACCES:
      // Another directory may have one that may be executed; if none has, this is what to say.
      number = EACCES;
      break;
    case ENOENT:
    case ENOTDIR:
    case ENODEV:
    case ESTALE:
    case ETIMEDOUT:
      break;
    default:
      return {start_step::execute, errno};
    }
  }
  return {start_step::execute, number};
}

// vfork, not posix_spawn, because the latter neither sets PR_SET_PDEATHSIG nor tells which step
// failed. The keeper has one thread and no signal handlers, so that the child has the memory to
// itself until it executes.
pid_t launch(const task& what, const std::vector<std::string>& candidates,
             volatile start_failure& failure) {
  auto keeper = ::getpid();
  auto child = ::vfork();
  if (child == 0) {
    auto reason = become_task(what, candidates, keeper);
    failure.step = reason.step;
    failure.number = reason.number;
    ::_exit(127);
  }
  if (child < 0)
    failure.number = errno;
  return child;
}

uint64_t nanoseconds(const timeval& time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<uint64_t>(time.tv_usec) * 1'000;
}

// Watches a task that runs.
class watch {
public:
  watch(uint64_t id, pid_t leader, uint64_t start_ns, int runner, pid_t guardian)
      : leader_(leader), runner_(runner), guardian_(guardian) {
    end_.kind = reply_kind::ended;
    end_.id = id;
    end_.process = leader;
    end_.start_ns = start_ns;
  }

  void run() {
    while (reap()) {
      if (leader_ended_ || closing_) {
        for (auto child : children())
          ::kill(child, SIGKILL);
      }
      if (leader_ended_ && !reported_ && now_ns() - end_.end_ns > patience_ns)
        report(true);
      await_signal();
    }
    if (!reported_)
      report(false);
  }

private:
  // Takes note of children that died.
  // @returns whether any child is left.
  bool reap() {
    for (;;) {
      // Looking before reaping: while the leader is a zombie, no other process can get its number,
      // and its group may safely be killed.
      siginfo_t info{};
      if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0)
        return false;
      if (info.si_pid == 0)
        return true;
      int status = 0;
      if (info.si_pid == leader_) {
        end_.end_ns = now_ns();
        leader_ended_ = true;
        ::kill(-leader_, SIGKILL);
      }
      ::waitpid(info.si_pid, &status, 0);
      if (info.si_pid == leader_) {
        end_.end = WIFSIGNALED(status) ? end_kind::signalled : end_kind::exited;
        end_.value = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
      }
    }
  }

  void await_signal() {
    sigset_t awaited;
    sigemptyset(&awaited);
    sigaddset(&awaited, SIGCHLD);
    sigaddset(&awaited, SIGTERM);
    sigaddset(&awaited, forward_signal());
    timespec sweep{0, sweep_ns};
    siginfo_t info{};
    auto number = leader_ended_ || closing_ ? ::sigtimedwait(&awaited, &info, &sweep)
                                            : ::sigwaitinfo(&awaited, &info);
    if (number == SIGTERM) {
      closing_ = true;
      if (!leader_ended_)
        ::kill(-leader_, SIGKILL);
    } else if (number == forward_signal() && !leader_ended_) {
      ::kill(-leader_, info.si_value.sival_int);
    }
  }

  void report(bool lingering) {
    reported_ = true;
    // Without a guardian the task was lost; that it was killed for this is not how it ended.
    if (::getppid() != guardian_)
      return;
    rusage used{};
    ::getrusage(RUSAGE_CHILDREN, &used);
    end_.user_ns = nanoseconds(used.ru_utime);
    end_.system_ns = nanoseconds(used.ru_stime);
    end_.max_resident = static_cast<uint64_t>(used.ru_maxrss) * 1024;
    end_.lingering = lingering ? 1 : 0;
    send_reply(runner_, end_);
  }

  const pid_t leader_;
  const int runner_;
  const pid_t guardian_;
  bool leader_ended_ = false;
  bool closing_ = false; // the task is to be killed, whatever it does
  bool reported_ = false;
  reply end_;
};

} // namespace

int forward_signal() noexcept {
  return SIGRTMIN;
}

void keep(const task& what, int runner, pid_t guardian) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != guardian)
    ::_exit(1);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::prctl(PR_SET_NAME, "troupe-keeper");

  auto candidates = candidates_for(what);
  volatile start_failure failure;
  auto start_ns = now_ns();
  auto leader = launch(what, candidates, failure);

  reply answer;
  answer.id = what.id;
  if (leader < 0 || failure.number != 0) {
    if (leader > 0)
      ::waitpid(leader, nullptr, 0);
    answer.kind = reply_kind::failed;
    answer.step = failure.step;
    answer.error_number = failure.number;
    send_reply(runner, answer);
    ::_exit(0);
  }
  // The output files belong to the task and the runner now; the guardian sees to it that the socket
  // has the lowest number.
  ::close_range(static_cast<unsigned>(runner) + 1, ~0U, 0);
  answer.kind = reply_kind::started;
  answer.process = leader;
  answer.start_ns = start_ns;
  send_reply(runner, answer);
  watch{what.id, leader, start_ns, runner, guardian}.run();
  ::_exit(0);
}

} // namespace troupe::guardian
