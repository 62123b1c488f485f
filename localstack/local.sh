#!/usr/bin/env bash
# Prints what has `make run` offer AWS services: where the emulated AWS is that
# `make localstack-up` has started. It prints nothing where there is none, or where
# LONGSHORE_AWS says what the caller wants.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
[ -z "${LONGSHORE_AWS:-}" ] || exit 0

case $emulator in
  # Whatever else answers there was not started for this.
  ministack) [ -e "$pid_file" ] && answers "$endpoint/_ministack/health" || exit 0 ;;
  *) answers "$endpoint/_localstack/health" || exit 0 ;;
esac

# One that enforces takes calls of AWS services that ship over TLS alone: its gateway
# says that TLS ends there.
if [ "$emulator" = ministack ] && [ -e "$run/gateway" ]; then
  AWS_ENDPOINT_URL=$(cat "$run/gateway")
  AWS_ENDPOINT_URL_S3=$AWS_ENDPOINT_URL
fi
echo "AWS services are those of the emulated AWS ($emulator): give applications AWS_ENDPOINT_URL=$AWS_ENDPOINT_URL" >&2

# Whatever the caller's own account is, it has no part in this.
echo 'unset AWS_PROFILE AWS_SESSION_TOKEN AWS_CA_BUNDLE AWS_CONFIG_FILE AWS_SHARED_CREDENTIALS_FILE'
for name in AWS_ENDPOINT_URL AWS_ENDPOINT_URL_S3 AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_REGION AWS_DEFAULT_REGION \
  AWS_EC2_METADATA_DISABLED; do
  printf 'export %s=%q\n' "$name" "${!name}"
done
echo 'EMULATED=true; export LONGSHORE_AWS=true'
# LocalStack puts no tokens on the events of stacks. MiniStack answers to its health
# check, too.
answers "$endpoint/_ministack/health" || echo 'export LONGSHORE_AWS_EMULATED=true'
