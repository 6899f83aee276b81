#!/usr/bin/env bash
# Runs the tests of one lane with the race detector, for make:
#
#   tools/test.sh short   what each commit must pass
#   tools/test.sh full    everything, with more moments and seeds
set -euo pipefail
cd "$(dirname "$0")/.."

case ${1:-} in
  short) lane=(-short) ;;
  full) lane=() ;;
  *)
    echo "usage: tools/test.sh short|full" >&2
    exit 1
    ;;
esac

meshes='^TestEndToEnd' # run a whole mesh
# Run without the race detector, which makes them five times slower, stops at as many
# goroutines as thousands of tasks have, and sees the hundreds of the short lane.
schedules='^TestThousandsOfFaultSchedules'
fleets='^TestSessionsComeBack|^TestFleetLogsInAfterAnOutage'
toolless='^TestPackagesPassWithoutTools' # runs go test itself
skipped=$([ ${#lane[@]} -gt 0 ] || echo "$fleets|$toolless")
export CONSUL_ECS_BIN=$PWD/bin # what make build has made
gotestsum=$PWD/.tools/bin/gotestsum
log=$(mktemp -d)
mkdir "$log/out" "$log/again"
trap 'rm -rf "$log"' EXIT
status=0

# tests NAME DIRECTORY PACKAGES FLAG...: go test without vet, which make check runs. A few
# tests that failed run once more, one at a time: beside others on a busy machine a program
# may have exceeded a time limit. A data race, a panic or a second failure is final.
tests() {
  (cd "$2" && "$gotestsum" --format standard-quiet --hide-summary skipped --rerun-fails=1 \
    --rerun-fails-max-failures=6 --rerun-fails-run-root-test --rerun-fails-abort-on-data-race \
    --rerun-fails-report "$log/again/$1" --packages "$3" -- -vet=off "${@:4}" 2>&1) | tee "$log/out/$1" || status=1
}

# The modules without the race detector.
others() {
  export CGO_ENABLED=0
  # Built as tools/ensure.sh builds Consul, whose packages it shares.
  tests aclcompare tools/aclcompare ./... -timeout 10m
  tests promtool tools/promtool ./... -timeout 10m
  [ ${#lane[@]} -gt 0 ] || tests schedules . "./broker ./consulutil ./healthsync" -timeout 80m -run "$schedules|$fleets"
  # Most of their time is that of terraform, which each test starts.
  tests terraform terraform ./... "${lane[@]}" -timeout 30m -skip "$meshes"
  return "$status"
}

# Beside the packages, whose tests wait most of the time.
others >"$log/others" &
export CGO_ENABLED=1 # for the race detector
# Those that take longest start first.
tests packages . "./localecs/command ./subcommand ./localecs/cluster ./..." -race "${lane[@]}" -p 6 -parallel 4 -timeout 40m \
  -skip "$meshes|$schedules${skipped:+|$skipped}"
wait $! || status=1
cat "$log/others"
# They count lost requests, so they have the machine to themselves, few at a time: an
# overloaded agent may fail instead of leaving.
tests meshes . ./localecs/command -race "${lane[@]}" -parallel 3 -timeout 60m -run "$meshes"
[ ${#lane[@]} -gt 0 ] || CGO_ENABLED=0 tests terraform-meshes terraform . -timeout 30m -run "$meshes"
[ ${#lane[@]} -gt 0 ] || CGO_ENABLED=0 tests toolless . . -timeout 30m -run "$toolless"

cat "$log"/out/* | tools/unran.sh || status=1
again=$(find "$log/again" -type f -exec cat {} +)
[ -z "$again" ] || printf 'Tests that failed and ran once more:\n%s\n' "$again"
# The sum of the groups, in the form of their own last lines. A group whose tests ran once
# more has two.
awk -v seconds="$SECONDS" -v failed="$status" '
  /^DONE / { last[FILENAME] = $0 }
  END {
    for (file in last) {
      words = split(last[file], w, " ")
      for (i = 2; i < words; i++) {
        if (w[i] ~ /^[0-9]+$/) { kind = w[i + 1]; sub(",", "", kind); sub(/s$/, "", kind); sum[kind] += w[i] }
      }
    }
    printf "DONE %d tests, %d skipped", sum["test"], sum["skipped"]
    if (failed) printf ", %d failures, %d errors", sum["failure"], sum["error"]
    printf " in %ds\n", seconds
  }' "$log"/out/*
exit "$status"
