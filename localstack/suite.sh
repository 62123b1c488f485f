#!/usr/bin/env bash
# The deployed tests, from nothing: an emulator of their own, on a port that
# nothing else has, the stack on it, the tests, and down again. What is external
# stays up. MiniStack enforces what IAM's policies say unless AUTH is false. The
# command ALSO, if there is one, is run as well, with the broker's address.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

if [ "$emulator" != external ]; then
  LOCALSTACK_PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  export LOCALSTACK_PORT
  unset AWS_ENDPOINT_URL AWS_ENDPOINT_URL_S3
fi
export EMULATOR=$emulator AUTH=${AUTH:-true} LONGSHORE_DEMO_DELAY=${LONGSHORE_DEMO_DELAY:-3s}
if [ "$emulator" != external ]; then
  trap 'make -s localstack-down' EXIT
fi
make -s localstack-up
make -s localstack-deploy
make -s localstack-test
if [ -n "${ALSO:-}" ]; then
  line=$(make -s localstack-env)
  eval "$line"
  "$ALSO"
fi
