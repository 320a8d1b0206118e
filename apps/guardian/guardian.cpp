#include "guardian.hpp"

#include "keeper.hpp"
#include "processes.hpp"
#include "troupe/actors/boot_clock.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::guardian {

namespace {

using namespace cluster::guardian;

// A little longer than a keeper's patience.
constexpr uint64_t close_patience_ns = 12'000'000'000;

// A private mapping of a sealed memory file, so that nobody can change or shorten it under us.
class sealed_memory {
public:
  sealed_memory(int file, size_t length) {
    struct stat info {};
    constexpr int needed = F_SEAL_SHRINK | F_SEAL_WRITE;
    int seals = ::fcntl(file, F_GET_SEALS);
    if (seals < 0 || (seals & needed) != needed || ::fstat(file, &info) != 0 ||
        static_cast<uint64_t>(info.st_size) != length)
      return;
    auto address = ::mmap(nullptr, length, PROT_READ, MAP_PRIVATE, file, 0);
    if (address != MAP_FAILED)
      bytes_ = {static_cast<char*>(address), length};
  }

  sealed_memory(const sealed_memory&) = delete;

  ~sealed_memory() {
    if (!bytes_.empty())
      ::munmap(bytes_.data(), bytes_.size());
  }

  std::span<char> bytes() const { return bytes_; }

private:
  std::span<char> bytes_;
};

} // namespace

guardian::guardian(int runner, int deaths, int timer)
    : runner_(runner), deaths_(deaths), timer_(timer),
      buffer_(sizeof(request_header) + max_inline_body) {}

void guardian::run() {
  for (;;) {
    pollfd watched[] = {{runner_, POLLIN, 0}, {deaths_, POLLIN, 0}, {timer_, POLLIN, 0}};
    if (::poll(watched, 3, -1) < 0 && errno != EINTR)
      break;
    if (watched[1].revents != 0)
      reap();
    // A runner that is gone wants no more of the starts that it had asked for.
    if ((watched[0].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0)
      break;
    if ((watched[0].revents & POLLIN) != 0 && !serve_one())
      break;
    uint64_t expirations = 0;
    while (::read(timer_, &expirations, sizeof expirations) > 0)
      ;
    // Without tasks there is nothing to end; the runner may still extend the lease.
    if (lease_over() && (came_late_ || !tasks_.empty())) {
      end_lease();
      break;
    }
  }
  close_down();
}

// @returns false when the runner is gone.
bool guardian::serve_one() {
  request what;
  iovec part{buffer_.data(), buffer_.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 3)];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  auto length = ::recvmsg(runner_, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (length < 0)
    return errno == EAGAIN || errno == EINTR;
  if (length == 0)
    return false;
  for (auto part_header = CMSG_FIRSTHDR(&message); part_header != nullptr;
       part_header = CMSG_NXTHDR(&message, part_header)) {
    if (part_header->cmsg_level != SOL_SOCKET || part_header->cmsg_type != SCM_RIGHTS)
      continue;
    auto count = (part_header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count && what.file_count < what.files.size(); ++i) {
      int file = -1;
      std::memcpy(&file, CMSG_DATA(part_header) + i * sizeof(int), sizeof file);
      what.files[what.file_count++].reset(file);
    }
  }
  auto truncated = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
  if (!take(static_cast<size_t>(length), truncated, what))
    refuse(what.header.id, start_step::request, EINVAL);
  return true;
}

// Checks a message and carries it out.
// @returns false when it is malformed.
bool guardian::take(size_t length, bool truncated, request& what) {
  if (length < sizeof what.header)
    return false;
  std::memcpy(&what.header, buffer_.data(), sizeof what.header);
  what.body = std::span{buffer_}.subspan(sizeof what.header, length - sizeof what.header);
  if (truncated)
    return false;
  switch (what.header.kind) {
  case request_kind::signal:
    if (!what.body.empty() || what.header.signal < 1 || what.header.signal > SIGRTMAX)
      return false;
    pass_signal(what);
    return true;
  case request_kind::extend:
    return what.body.empty() && extend(what);
  case request_kind::start:
    if (what.header.body_length > max_body)
      return false;
    start(what);
    return true;
  }
  return false;
}

// @returns false for a time that no clock shows.
bool guardian::extend(const request& what) {
  auto end = what.header.lease_end_ns;
  constexpr uint64_t second = 1'000'000'000;
  if (end == 0 || end > INT64_MAX)
    return false;
  if (leased_ && end <= lease_end_ns_)
    return true;
  leased_ = true;
  lease_end_ns_ = end;
  itimerspec when{};
  when.it_value.tv_sec = static_cast<time_t>(end / second);
  when.it_value.tv_nsec = static_cast<long>(end % second);
  ::timerfd_settime(timer_, TFD_TIMER_ABSTIME, &when, nullptr);
  return true;
}

bool guardian::lease_over() const {
  auto now = cluster::boot_clock::now().time_since_epoch().count();
  return leased_ && static_cast<uint64_t>(now) >= lease_end_ns_;
}

// The ends of tasks that are killed for this are not reported, as they did not end like that.
void guardian::end_lease() {
  reply notice;
  notice.kind = reply_kind::lease_ended;
  // The runner may be stopped, and the socket full: then it sees the hang-up alone.
  ::send(runner_, &notice, sizeof notice, MSG_DONTWAIT | MSG_NOSIGNAL);
  ::shutdown(runner_, SHUT_RDWR);
}

void guardian::start(request& what) {
  if (lease_over()) {
    came_late_ = true; // it is lost with all others
    return;
  }
  auto& header = what.header;
  task wanted;
  wanted.id = header.id;
  wanted.output = what.files[0].get();
  wanted.errors = what.files[1].get();
  auto run_with = [&](std::span<char> body) {
    if (parse_body(body.data(), body.size(), header.strings, header.arguments, wanted))
      start_parsed(wanted);
    else
      refuse(header.id, start_step::request, EINVAL);
  };
  if (what.file_count == 2 && what.body.size() == header.body_length) {
    run_with(what.body);
  } else if (what.file_count == 3 && what.body.empty() && header.body_length > 0) {
    sealed_memory memory{what.files[2].get(), static_cast<size_t>(header.body_length)};
    run_with(memory.bytes());
  } else {
    refuse(header.id, start_step::request, EINVAL);
  }
}

void guardian::start_parsed(const task& what) {
  if (std::ranges::any_of(tasks_, [&](auto& known) { return known.id == what.id; })) {
    refuse(what.id, start_step::request, EEXIST);
    return;
  }
  auto self = ::getpid();
  auto keeper = ::fork();
  if (keeper == 0)
    keep(what, runner_, self);
  if (keeper < 0)
    refuse(what.id, start_step::fork, errno);
  else
    tasks_.push_back({keeper, what.id});
}

void guardian::pass_signal(const request& what) {
  auto found = std::ranges::find(tasks_, what.header.id, &kept_task::id);
  if (found == tasks_.end())
    return; // it has just ended
  // To a keeper, SIGTERM means to kill the task. Unlike a queued signal it cannot fail.
  if (what.header.signal == SIGKILL) {
    ::kill(found->keeper, SIGTERM);
    return;
  }
  sigval value{};
  value.sival_int = what.header.signal;
  if (::sigqueue(found->keeper, forward_signal(), value) != 0)
    std::fprintf(stderr, "troupe-guardian: cannot pass signal %d to task %llu: %s\n",
                 what.header.signal, static_cast<unsigned long long>(what.header.id),
                 std::strerror(errno));
}

void guardian::refuse(uint64_t id, start_step step, int error_number) {
  reply answer;
  answer.kind = reply_kind::failed;
  answer.id = id;
  answer.step = step;
  answer.error_number = error_number;
  send_reply(runner_, answer);
}

void guardian::reap() {
  signalfd_siginfo ignored[16];
  while (::read(deaths_, ignored, sizeof ignored) > 0)
    ;
  int status = 0;
  pid_t process = 0;
  while ((process = ::waitpid(-1, &status, WNOHANG)) > 0) {
    auto found = std::ranges::find(tasks_, process, &kept_task::keeper);
    if (found == tasks_.end())
      continue;
    if (!WIFEXITED(status)) {
      // Killed, so that its task has been, too, and cannot be asked any more how it was.
      reply answer;
      answer.kind = reply_kind::ended;
      answer.id = found->id;
      answer.end = end_kind::signalled;
      answer.value = SIGKILL;
      answer.end_ns = now_ns();
      answer.lingering = 1;
      send_reply(runner_, answer);
      strays_ = true;
    }
    *found = tasks_.back();
    tasks_.pop_back();
  }
  if (strays_)
    kill_strays();
}

// A stray's own children come to us with its death, which calls this again.
void guardian::kill_strays() {
  strays_ = false;
  for (auto child : children()) {
    if (std::ranges::find(tasks_, child, &kept_task::keeper) == tasks_.end()) {
      ::kill(child, SIGKILL);
      strays_ = true;
    }
  }
}

void guardian::close_down() {
  for (auto& known : tasks_)
    ::kill(known.keeper, SIGTERM);
  auto begin = now_ns();
  sigset_t death;
  sigemptyset(&death);
  sigaddset(&death, SIGCHLD);
  while (now_ns() - begin < close_patience_ns) {
    reap();
    kill_strays();
    if (::waitid(P_ALL, 0, nullptr, WEXITED | WNOHANG | WNOWAIT) != 0)
      return; // no child is left
    timespec pause{0, 100'000'000};
    ::sigtimedwait(&death, nullptr, &pause);
  }
}

} // namespace troupe::guardian
