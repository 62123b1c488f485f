# Sourced by the scripts beside it: which emulator there is, and how to reach
# it. Nothing here can reach AWS: the endpoint and the keys are the emulator's.
# shellcheck shell=bash
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# Several can be up beside each other, each on a port of its own.
port=${LOCALSTACK_PORT:-4566}
run=.localstack/$port
pid_file=$run/pid
compose=(docker compose --file localstack/docker-compose.yml --project-name "longshore-$port")

fail() {
  echo "localstack: $*" >&2
  exit 1
}

case ${EMULATOR:-} in
  docker | ministack | external) emulator=$EMULATOR ;;
  '') if docker info >/dev/null 2>&1; then emulator=docker; else emulator=ministack; fi ;;
  *) fail "EMULATOR is \"$EMULATOR\": give docker, ministack or external" ;;
esac

if [ "$emulator" = external ]; then
  run=.localstack/external
  endpoint=${AWS_ENDPOINT_URL:-}
  endpoint=${endpoint%/}
  [ -n "$endpoint" ] || fail "EMULATOR is external: say where it answers by AWS_ENDPOINT_URL"
  case $endpoint in
    *amazonaws*) fail "AWS_ENDPOINT_URL is \"$endpoint\", which is AWS itself" ;;
  esac
else
  endpoint=http://127.0.0.1:$port
fi

# Whatever the caller's own account is, it has no part in this.
unset AWS_PROFILE AWS_SESSION_TOKEN AWS_CA_BUNDLE AWS_CONFIG_FILE AWS_SHARED_CREDENTIALS_FILE
export AWS_ENDPOINT_URL=$endpoint AWS_ENDPOINT_URL_S3=$endpoint
export AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test
export AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1
export AWS_EC2_METADATA_DISABLED=true

answers() {
  python3 - "$1" <<'PYTHON' 2>/dev/null
import sys, urllib.request
urllib.request.build_opener(urllib.request.ProxyHandler({})).open(sys.argv[1], timeout=2).read()
PYTHON
}

# contexts sets what the CDK app is told, for a stack.
contexts() {
  : "${ARCHITECTURE:?is not set: run make localstack-deploy}" "${STACK:?is not set: run make localstack-deploy}"
  local base which=localstack
  base=$(base_path)
  if answers "$endpoint/_ministack/health"; then which=ministack; fi
  # An emulator that enforces IAM knows no more than the caller's own rights.
  context=(--context "stack=$STACK" --context "architecture=$ARCHITECTURE" --context cli-credentials=true --context demo=true
    --context "base-path=$base" --context cloudformation=true --context "cloudformation-emulator=$which" --context "offerings=$PWD/docs/examples"
    # Tests ask more at once than platforms do.
    --context throttle-rate=1000 --context throttle-burst=2000 --context platform-rate=0)
  if [ -n "${LONGSHORE_DEMO_DELAY:-}" ]; then
    context+=(--context "demo-delay=$LONGSHORE_DEMO_DELAY")
  fi
}

# prepare makes what AWS services need beside the stack.
prepare() {
  local context
  contexts
  # shellcheck disable=SC2086 # it is several words
  go run -C infra ./deployed prepare --stack "$STACK" -- "${context[@]}" ${CONTEXT:-}
}

# The CDK's command line says what it does where nobody looks unless it fails.
quietly() {
  local what=$1 log=$PWD/$run/$STACK.log
  shift
  mkdir -p "$run"
  if ! CI=true CDK_DISABLE_CLI_TELEMETRY=true JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION=20,22,24 "$@" >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    fail "$what of $STACK has failed: see $log"
  fi
}
cdk_program=$PWD/.tools/cdk-2.1148.1/node_modules/.bin/cdk

# cdk is the CDK's command line on the CDK app, for a stack. Stacks have folders
# of their own, so that they can be deployed beside one another.
cdk() {
  [ -x "$cdk_program" ] || fail "the CDK's command line is not installed: run make localstack-deploy"
  local context out=$PWD/$run/$STACK.out
  contexts
  # What follows on the command line, such as -c table=TABLE, stands in CONTEXT.
  # shellcheck disable=SC2086 # it is several words
  quietly "cdk $1" env --chdir infra "$cdk_program" "$@" --output "$out" "${context[@]}" ${CONTEXT:-}
}

# bootstrap makes what the CDK needs in the emulator's account. Beside the app, the
# command line would synthesize that first, which is most of its work.
bootstrap() {
  mkdir -p "$run"
  quietly 'cdk bootstrap' env --chdir "$run" "$cdk_program" bootstrap aws://000000000000/us-east-1
}

# base_path is what stands before the broker's own paths, by the emulator's own
# form, with {api} for the id of the API. MiniStack answers to LocalStack's
# health check too.
base_path() {
  if answers "$endpoint/_ministack/health"; then
    echo "/restapis/{api}/prod/_user_request_"
  elif answers "$endpoint/_localstack/health"; then
    echo "/_aws/execute-api/{api}/prod"
  else
    fail "no emulator answers at $endpoint: run make localstack-up"
  fi
}
