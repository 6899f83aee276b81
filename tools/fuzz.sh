#!/usr/bin/env bash
# Runs every native fuzz target for the given time each.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-20s}

grep -rlE '^func Fuzz' --include='*_test.go' . | while read -r file; do
  for target in $(sed -nE 's/^func (Fuzz[A-Za-z0-9]+)\(.*/\1/p' "$file"); do
    echo "==> $(dirname "$file") $target"
    # In its directory: tools/aclcompare is its own module. Without the limit, one input's
    # minimization takes a minute, and nothing else is tried.
    go test -C "$(dirname "$file")" -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 100x . </dev/null
  done
done
