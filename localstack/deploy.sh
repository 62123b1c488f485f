#!/usr/bin/env bash
# Deploys the CDK app, as it is, to the emulator. The functions are built.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

prepare
bootstrap
cdk deploy --require-approval never
# shellcheck disable=SC2016 # it is what to type
echo 'deployed; eval "$(make -s localstack-env)" says where the broker is'
