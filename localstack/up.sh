#!/usr/bin/env bash
# Starts the emulator, on loopback only, and ends when it answers.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

started() {
  # Its log says more than a missing answer.
  for _ in $(seq 120); do
    if answers "$endpoint/_ministack/health"; then return 0; fi
    kill -0 "$1" 2>/dev/null || return 1
    sleep 0.25
  done
  return 1
}

case $emulator in
  external)
    base_path >/dev/null
    ;;
  docker)
    "${compose[@]}" up --detach --wait
    ;;
  ministack)
    if answers "$endpoint/_ministack/health"; then
      echo "MiniStack is up already at $endpoint"
      exit 0
    fi
    ministack=$PWD/.tools/ministack-1.5.33/bin/ministack
    [ -x "$ministack" ] || make --no-print-directory emulator
    # An emulator that starts keeps nothing of the one before.
    rm -rf "$run"
    mkdir -p "$run/tmp"
    here=$PWD/$run
    # Services that ship take calls over TLS alone, and this one enforces that on
    # plain HTTP: its functions, and make run, reach it by a gateway.
    program=("$ministack")
    if [ "${AUTH:-false}" = true ]; then
      go build -o "$run/emulator" ./localstack/emulator
      program=("$here/emulator" "$endpoint" "$here/gateway" "$ministack")
    fi
    # Functions inherit this environment whole, and so find the emulator. In
    # job control a job has a process group of its own, to be ended by. What
    # speaks MQTT would listen on all addresses.
    set -m
    env -i PATH=/usr/local/bin:/usr/bin:/bin HOME="$here" TMPDIR="$here/tmp" \
      STATE_DIR="$here/state" S3_DATA_DIR="$here/s3" \
      BIND_HOST=127.0.0.1 MINISTACK_HOST=127.0.0.1 GATEWAY_PORT="$port" IOT_MTLS_ENABLED=0 \
      AWS_ENDPOINT_URL="$endpoint" AWS_EC2_METADATA_DISABLED=true \
      AUTH="${AUTH:-false}" SFN_WAIT_SCALE="${SFN_WAIT_SCALE:-1}" \
      nohup "${program[@]}" </dev/null >"$run/log" 2>&1 &
    set +m
    echo $! >"$pid_file"
    if ! started "$!"; then
      tail -n 20 "$run/log" >&2
      fail "MiniStack has not started: see $run/log"
    fi
    ;;
esac
echo "the emulator ($emulator) is up at $endpoint"
