#!/usr/bin/env bash
# Looks for known vulnerabilities that consul-ecs and localecs can reach, for make. It prints
# the module, the calls that reach it and the version without it, and fails.
#
# The database is that of vuln.go.dev, from its module: no host but Go's module proxy is needed.
# A newer one: go list -m golang.org/x/vulndb@latest
set -euo pipefail
cd "$(dirname "$0")/.."

database=golang.org/x/vulndb@v0.0.0-20261105234957-e22db6528018
# First as text: as JSON, go's error is no line of standard error.
go mod download "$database" || { echo "vuln.sh: the database needs Go's module proxy once (go env GOPROXY)" >&2; exit 1; }
dir=$(go mod download -json "$database" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')

# scan MODULE PACKAGE...: exit code 3 when a vulnerability can be reached.
scan() { .tools/bin/govulncheck -C "$1" -db "file://$dir/data/osv" "${@:2}"; }

# With a database that is not read, nothing would ever be found.
status=0
control=$(scan tools/vuln/control . 2>&1) || status=$?
if [ "$status" -ne 3 ] || ! grep -q 'Fixed in: golang.org/x/text@v0.3.8' <<<"$control"; then
  printf '%s\nvuln.sh: the scan does not find the vulnerability in tools/vuln/control: check the database and govulncheck\n' "$control" >&2
  exit 1
fi
scan . ./cmd/consul-ecs ./cmd/localecs
