#!/bin/bash
# demo.sh BIN [--keep]: a cluster of one controller and three workers on this machine runs a job of 64 tasks,
# loses a worker half way, and ends with every result right. BIN holds the programs.
#   --keep   leave the cluster up, and say how to use and to end it
# Exit: 0 only if every result agrees with what the same command gives here.
set -euo pipefail

readonly tasks=64 workers=3 victim=2 deadline=60
bin=$(cd "${1:?usage: demo.sh BIN [--keep]}" && pwd)
shift
keep=false
for argument in "$@"; do
  case $argument in
    --keep) keep=true ;;
    *) echo "demo: unknown argument '$argument'; there is only --keep" >&2; exit 2 ;;
  esac
done

started=$SECONDS
work=$(mktemp -d "${TMPDIR:-/tmp}/troupe-demo.XXXXXX")
declare -a pids=()

say() { printf '\n== %s\n' "$*"; }
fail() { echo "demo: $*" >&2; tail -n 5 "$work"/*.log >&2 2>/dev/null || true; exit 1; }
troupe() { "$bin/troupe" --controller "$address" "$@"; }
field() { sed -n "s/.*\"$1\": *\"\{0,1\}\([^,\"}]*\).*/\1/p" | head -n 1; }

# Whether all nodes have ended.
gone() {
  local pid
  for pid in "${pids[@]}"; do ! kill -0 "$pid" 2>/dev/null || return 1; done
}

# Ends everything that this script started; also when it is interrupted.
finish() {
  local status=$?
  trap - EXIT
  trap '' INT TERM HUP # once is enough
  if ((status != 0)) || ! $keep; then
    ((${#pids[@]} == 0)) || kill "${pids[@]}" 2>/dev/null || true
    local until=$((SECONDS + 10))
    until gone || ((SECONDS >= until)); do sleep 0.05; done
    gone || kill -9 "${pids[@]}" 2>/dev/null || true
    until gone; do sleep 0.05; done
    rm -rf "$work"
  fi
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

# start NAME FLAG...: a node in the background; its log is NAME.log.
start() {
  local name=$1
  shift
  : >"$work/$name.log" # it is read before the node has opened it
  "$bin/trouped" --node-id "$name" "$@" >>"$work/$name.log" 2>&1 </dev/null &
  pids+=($!)
  disown # no message of bash when it is killed
}

# await WHAT COMMAND...: repeats the command until it succeeds.
await() {
  local what=$1 until=$((SECONDS + deadline))
  shift
  until "$@"; do
    ((SECONDS < until)) || fail "$what: not within $deadline s"
    sleep 0.05
  done
}

say "Starting a controller and $workers workers"
start controller --node-roles controller --node-listen 127.0.0.1:0
has_address() { address=$(sed -n 's/.*listening on \(.*\)/\1/p' "$work/controller.log") && [ -n "$address" ]; }
await "the controller listens" has_address
for ((i = 1; i <= workers; i++)); do
  start "worker$i" --node-roles worker --node-controller "$address" --worker-cpus 2
done
all_joined() { [ "$(troupe nodes --json 2>/dev/null | grep -c '"path": *"[^"]')" = $workers ]; }
await "all workers join" all_joined
troupe nodes
echo
troupe info

# The work: a checksum and a count of words of real files, one file a task.
mapfile -t files < <(find /usr/share/common-licenses /usr/share/doc -maxdepth 2 -type f -size +1k 2>/dev/null | sort | head -n $tasks)
((${#files[@]} > 0)) || fail "no files to work on below /usr/share"
for ((i = 0; i < tasks; i++)); do printf '%s\n' "${files[i % ${#files[@]}]}"; done >"$work/files"
cat >"$work/task" <<'TASK'
# task LIST: the checksum and the number of words of the file on this task's line of LIST.
file=$(sed -n "$((TROUPE_TASK_INDEX + 1))p" "$1")
sha256sum "$file"
wc -w "$file"
[ -z "$TROUPE_JOB_ID" ] || sleep 0.25 # so that there is something to interrupt
TASK

say "Submitting a job of $tasks tasks over ${#files[@]} files"
job=$(troupe submit --quiet --name demo --array 0-$((tasks - 1)) -- sh "$work/task" "$work/files")
echo "job $job"
progress() {
  local state
  state=$(troupe job "$job" --json)
  done_tasks=$(field succeeded <<<"$state")
  restarts=$(field restarts <<<"$state")
  local width=$((done_tasks * 40 / tasks)) bar
  printf -v bar '%*s' $width ''
  printf '\r[%-40s] %d of %d done, %d started again' "${bar// /#}" "$done_tasks" $tasks "$restarts"
}
quarter_done() { progress; ((done_tasks >= tasks / 4)); }
await "a quarter of the tasks is done" quarter_done
busy() { troupe send "worker.worker$victim" tasks 2>/dev/null | grep -q "job $job "; }
await "worker$victim runs tasks" busy
victim_pid=${pids[victim]}
kill -9 "$victim_pid"
unset "pids[victim]"
printf '\n'
say "Killed worker$victim (process $victim_pid) with SIGKILL while it ran tasks"
all_done() { progress; ((done_tasks == tasks)); }
await "all tasks are done" all_done
printf '\n'
troupe wait "$job" >/dev/null || fail "the job failed (status $?)"
((restarts > 0)) || fail "no task was started again, though a worker died"

say "Comparing every result with the same command run here"
wrong=0
for ((i = 0; i < tasks; i++)); do
  TROUPE_JOB_ID='' TROUPE_TASK_INDEX=$i sh "$work/task" "$work/files" >"$work/expected"
  troupe output "$job" --task $i >"$work/result"
  cmp -s "$work/expected" "$work/result" || { echo "task $i differs"; wrong=$((wrong + 1)); }
done
((wrong == 0)) || fail "$wrong of $tasks results are wrong"
echo "all $tasks results agree"
troupe nodes

if $keep; then
  say "The cluster is still up"
  echo "enter its shell:  TROUPE_CONTROLLER=$address $bin/troupe"
  echo "end it:           TROUPE_CONTROLLER=$address $bin/troupe shutdown"
  echo "its logs:         $work"
else
  say "Ending the cluster"
  troupe shutdown
fi
echo "done in $((SECONDS - started)) s: $tasks tasks, 1 worker killed, $restarts tasks started again, 0 results lost"
