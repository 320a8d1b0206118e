#!/bin/bash
# install_test.sh CMAKE BUILD COMPILER FLAGS: installs BUILD and uses the installation as a stranger would.
set -euo pipefail
cmake=$1 build=$2 compiler=$3 flags=$4
here=$(dirname "$(readlink -f "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix="$work/a prefix"

"$cmake" --install "$build" --prefix "$prefix" >"$work/log" || {
  cat "$work/log"
  exit 1
}
for program in trouped troupe; do
  "$prefix/bin/$program" --help >/dev/null
done
"$cmake" -S "$here/user" -B "$work/build" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS="$flags" \
  -DCMAKE_PREFIX_PATH="$prefix"
"$cmake" --build "$work/build"
TROUPE_DEVICE=soft "$work/build/user"
