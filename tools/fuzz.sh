#!/usr/bin/env bash
# Runs every native fuzz target for the given time each.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-20s}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# only_time_is_over reports whether a target failed for no input, but because its time was
# over: so does Go before 1.27 when a worker is busy just then (go.dev/issue/75804).
only_time_is_over() {
  grep -qx '    context deadline exceeded' "$log" && ! grep -q 'Failing input written to' "$log" &&
    echo "    the time was over while a worker was busy; no input failed"
}

grep -rlE '^func Fuzz' --include='*_test.go' . | while read -r file; do
  for target in $(sed -nE 's/^func (Fuzz[A-Za-z0-9]+)\(.*/\1/p' "$file"); do
    echo "==> $(dirname "$file") $target"
    # In its directory: tools/aclcompare is its own module. Without the limit, one input's
    # minimization takes a minute, and nothing else is tried.
    go test -C "$(dirname "$file")" -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 100x . </dev/null 2>&1 |
      tee "$log" || only_time_is_over
  done
done
