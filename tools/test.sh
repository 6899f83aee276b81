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
export CONSUL_ECS_BIN=$PWD/bin # what make build has made
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0

# tests DIRECTORY FLAG...: go test without vet, which make check runs. It keeps the output
# and goes on after a failure.
tests() { go test -C "$1" -vet=off "${@:2}" 2>&1 | tee -a "$log" || status=1; }

export CGO_ENABLED=1 # for the race detector
tests . -race "${lane[@]}" -p 4 -parallel 4 -timeout 40m -skip "$meshes" ./...
# They count lost requests, so they have the machine to themselves, few at a time: an
# overloaded agent may fail instead of leaving.
tests . -race "${lane[@]}" -parallel 3 -timeout 60m -run "$meshes" ./localecs/command
# Built as tools/ensure.sh builds Consul, whose packages it shares.
CGO_ENABLED=0 tests tools/aclcompare -timeout 10m ./...
# Most of their time is that of terraform, which each test starts.
CGO_ENABLED=0 tests terraform "${lane[@]}" -timeout 30m ./...

tools/unran.sh <"$log" || status=1
exit "$status"
