#!/usr/bin/env bash
# Runs a command, and beside it the tests of the deployed broker, which mostly
# wait. Succeeds if both do.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mkdir -p .localstack
log=$(mktemp .localstack/suite.XXXXXX)
echo "the deployed broker is tested beside the packages; its log: $log"
make -s test-deployed >"$log" 2>&1 &
suite=$!
trap 'kill $suite 2>/dev/null || true' EXIT

status=0
"$@" || status=$?
echo "waiting for the tests of the deployed broker (about five minutes in all)"
wait $suite || status=$?
trap - EXIT
cat "$log"
rm -f "$log"
exit $status
