// The keeper of one task: a process of its own between the guardian and the task.
//
// The keeper is what makes a task's end the end of all its processes. It is a "child subreaper", so
// whatever the task leaves behind, daemons that made a session of their own included, becomes the
// keeper's child and is killed. One keeper per task tells whose an orphan is; cgroups would too,
// but need rights that a worker often lacks.
//
// Nobody can make a task outlive its keepers by one SIGKILL:
//  - the guardian dies: the kernel sends every keeper SIGTERM (PR_SET_PDEATHSIG), which makes it
//  kill
//    its task;
//  - a keeper dies: the kernel sends the task's leader SIGKILL, and the rest becomes the
//  guardian's.
#pragma once

#include "task.hpp"

#include <sys/types.h>

namespace troupe::guardian {

/// The signal by which the guardian has a keeper pass a signal (the attached value) to its task.
int forward_signal() noexcept;

/// Runs and watches `what` to its end, and tells `runner` (the socket) about it. To be called in a
/// fresh child of `guardian`, with all signals blocked.
[[noreturn]] void keep(const task& what, int runner, pid_t guardian);

} // namespace troupe::guardian
