#!/usr/bin/env bash
# Removes the stack from the emulator, as make destroy does from AWS, whatever
# lives in it.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cdk destroy --force
