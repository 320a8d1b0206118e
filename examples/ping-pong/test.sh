#!/bin/bash
# test.sh PROGRAM [DEVICE ADDRESS]: runs server and client as two processes and checks what the client prints.
set -euo pipefail
program=$1 device=${2:-soft} address=${3:-127.0.0.1}
export TROUPE_DEVICE=$device
if [[ $device == verbs:* && ! -d /sys/class/infiniband/${device#verbs:} ]]; then
  echo "skipped: this machine has no RDMA device '${device#verbs:}'"
  exit 77
fi
if [[ $device == verbs:* && -z ${TROUPE_KEY_FILE:-} ]]; then # an adapter is reached by others: it takes a key
  TROUPE_KEY_FILE=$(mktemp)
  export TROUPE_KEY_FILE
  od -An -v -tx1 -N32 /dev/urandom | tr -d ' \n' >"$TROUPE_KEY_FILE"
  key=$TROUPE_KEY_FILE
fi
exec {port_of}< <(exec "$program" serve 0 "$address")
server=$!
trap 'kill "$server" 2>/dev/null || true; [ -z "${key:-}" ] || rm -f "$key"' EXIT
read -r -t 60 -u "$port_of" port
got=$(timeout 60 "$program" call "$address" "$port" 3)
[ "$got" = $'ping-pong\nping-pong\nping-pong' ] || { echo "the client printed: $got"; exit 1; }
for ((i = 0; i < 600; i++)); do
  kill -0 "$server" 2>/dev/null || exit 0
  sleep 0.1
done
echo "the server did not end"
exit 1
