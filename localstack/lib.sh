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
