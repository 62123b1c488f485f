#!/usr/bin/env bash
# Prints the command that exports where the deployed broker is and what it is
# logged in to with, and nothing else.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

url=$endpoint$(base_path)
go run -C infra ./deployed env --stack "${STACK:-Longshore}" --url "$url"
