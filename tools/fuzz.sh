#!/usr/bin/env bash
# Runs every native fuzz target for the given time each.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-20s}
grep -rlE '^func Fuzz' --include='*_test.go' . | while read -r file; do
  for target in $(sed -nE 's/^func (Fuzz[A-Za-z0-9]+)\(.*/\1/p' "$file"); do
    echo "==> $(dirname "$file") $target"
    # In its directory: tools/aclcompare is its own module.
    go test -C "$(dirname "$file")" -run '^$' -fuzz "^$target\$" -fuzztime "$time" .
  done
done
