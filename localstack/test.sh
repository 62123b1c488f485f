#!/usr/bin/env bash
# Tests the deployed broker by what a platform sees of it.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

line=$(bash localstack/env.sh)
eval "$line"
# Most of them wait, whatever the number of processors. More at once have the emulator
# answer each call so late that requests run out of time.
go test -tags deployed -count 1 -timeout 40m -parallel 8 ./localstack/... ${TESTFLAGS:-}
