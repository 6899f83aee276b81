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
# Run without the race detector, which makes them five times slower and sees the hundred
# of the short lane.
schedules='^TestThousandsOfFaultSchedules'
export CONSUL_ECS_BIN=$PWD/bin # what make build has made
log=$(mktemp)
trap 'rm -f "$log" "$log.others"' EXIT
status=0

# run DIRECTORY FLAG...: go test without vet, which make check runs.
run() { go test -C "$1" -vet=off "${@:2}" 2>&1; }

# tests DIRECTORY FLAG...: run that keeps the output, and goes on after a failure.
tests() { run "$@" | tee -a "$log" || status=1; }

# The modules without the race detector.
others() {
  local failed=0
  export CGO_ENABLED=0
  # Built as tools/ensure.sh builds Consul, whose packages it shares.
  run tools/aclcompare -timeout 10m ./... || failed=1
  [ ${#lane[@]} -gt 0 ] || run . -timeout 40m -run "$schedules" ./broker || failed=1
  # Most of their time is that of terraform, which each test starts.
  run terraform "${lane[@]}" -timeout 30m -skip "$meshes" ./... || failed=1
  return "$failed"
}

# Beside the packages, whose tests wait most of the time.
others >"$log.others" &
export CGO_ENABLED=1 # for the race detector
# Those that take longest start first.
tests . -race "${lane[@]}" -p 6 -parallel 4 -timeout 40m -skip "$meshes|$schedules" ./localecs/command ./subcommand ./localecs/cluster ./...
wait $! || status=1
tee -a "$log" <"$log.others"
# They count lost requests, so they have the machine to themselves, few at a time: an
# overloaded agent may fail instead of leaving.
tests . -race "${lane[@]}" -parallel 3 -timeout 60m -run "$meshes" ./localecs/command
CGO_ENABLED=0 tests terraform "${lane[@]}" -timeout 30m -run "$meshes" .

tools/unran.sh <"$log" || status=1
exit "$status"
