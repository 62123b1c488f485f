#!/usr/bin/env bash
# Removes the stack from the emulator, as make destroy does from AWS, whatever
# lives in it. What was deployed is known: nothing is synthesized again.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cdk destroy --force --app "$PWD/$run/$STACK.out"
