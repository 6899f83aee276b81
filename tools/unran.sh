#!/usr/bin/env bash
# Prints the packages that have test files and no "ok" line in the output of go test on
# standard input, and fails if there are any: no pattern may leave a package's tests out.
set -euo pipefail
cd "$(dirname "$0")/.."

module=$(go list -m)
ran=$(awk '/^ok[[:space:]]/ && !/no tests to run/ {print $2}' | sort -u)
have=$(git ls-files --cached --others --exclude-standard '*_test.go' | grep -v /testdata/ |
  xargs -n1 dirname | sort -u | sed "s#^#$module/#; s#/\.\$##" | sort -u)
left=$(comm -13 <(echo "$ran") <(echo "$have"))
[ -z "$left" ] && exit
printf 'these packages have tests that did not pass:\n%s\n' "$left" >&2
exit 1
