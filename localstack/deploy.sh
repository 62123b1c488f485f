#!/usr/bin/env bash
# Deploys the CDK app, as it is, to the emulator. The functions are built.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

: "${ARCHITECTURE:?is not set: run make localstack-deploy}" "${STACK:?is not set: run make localstack-deploy}"
base=$(base_path)
cdk=$PWD/.tools/cdk-2.1148.1/node_modules/.bin/cdk
[ -x "$cdk" ] || fail "the CDK's command line is not installed: run make localstack-deploy"
export CI=true CDK_DISABLE_CLI_TELEMETRY=true JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION=20,22,24

# An emulator that enforces IAM knows no more than the caller's own rights.
context=(--context "stack=$STACK" --context "architecture=$ARCHITECTURE" --context cli-credentials=true
  --context "base-path=$base"
  # Tests ask more at once than platforms do.
  --context throttle-rate=1000 --context throttle-burst=2000)
if [ -n "${LONGSHORE_DEMO_DELAY:-}" ]; then
  context+=(--context "demo-delay=$LONGSHORE_DEMO_DELAY")
fi

mkdir -p "$run"
log=$PWD/$run/deploy.log
quietly() {
  if ! "$@" >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    fail "deploying has failed: see $log"
  fi
}
cd infra
quietly "$cdk" bootstrap "${context[@]}"
quietly "$cdk" deploy --require-approval never "${context[@]}"
# shellcheck disable=SC2016 # it is what to type
echo 'deployed; eval "$(make -s localstack-env)" says where the broker is'
