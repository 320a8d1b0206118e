// The guardian proper: takes requests, keeps a keeper for each task.
#pragma once

#include "task.hpp"

#include "executor/guardian_protocol.hpp"
#include "troupe/actors/unique_fd.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <sys/types.h>
#include <vector>

namespace troupe::guardian {

/// Serves one runner until it closes its end of the socket or dies, or has tasks whose lease ends;
/// then kills every task and whatever is left of any. The process must have one thread, all signals
/// blocked and at their default action, and be a child subreaper.
class guardian {
public:
  /// `runner`: a connected SOCK_SEQPACKET socket; the lowest descriptor after the standard three.
  /// `deaths`: a non-blocking signalfd for SIGCHLD. `timer`: a timerfd of CLOCK_BOOTTIME. None is
  /// owned.
  guardian(int runner, int deaths, int timer);

  /// @returns when all tasks are gone, or would not die for some seconds.
  void run();

private:
  struct kept_task {
    pid_t keeper = 0;
    uint64_t id = 0;
  };

  /// The parts of one received message.
  struct request {
    cluster::guardian::request_header header;
    std::span<char> body;
    std::array<cluster::unique_fd, 3> files;
    size_t file_count = 0;
  };

  bool serve_one();
  bool take(size_t length, bool truncated, request& out);
  void start(request& what);
  void start_parsed(const task& what);
  void pass_signal(const request& what);
  bool extend(const request& what);
  bool lease_over() const;
  void end_lease();
  void reap();
  void kill_strays();
  void close_down();
  void refuse(uint64_t id, cluster::guardian::start_step step, int error_number);

  const int runner_;
  const int deaths_;
  const int timer_;
  uint64_t lease_end_ns_ = UINT64_MAX; // CLOCK_BOOTTIME; for ever until the runner says otherwise
  bool leased_ = false;
  bool came_late_ = false; // a task was to be started when the lease was over
  std::vector<kept_task> tasks_;
  bool strays_ = false; // a keeper was killed: what it kept is a child of ours now
  std::vector<char> buffer_;
};

} // namespace troupe::guardian
