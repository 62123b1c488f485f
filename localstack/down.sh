#!/usr/bin/env bash
# Ends the emulator that up.sh started, with all that it holds.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Who runs under a recorded id may by now be somebody else.
ours() {
  ps -o command= -p "$1" 2>/dev/null | grep -q '[m]inistack'
}

if [ -e "$pid_file" ]; then
  pid=$(cat "$pid_file")
  if ours "$pid"; then
    kill -TERM -- "-$pid"
    for _ in $(seq 40); do
      ours "$pid" || break
      sleep 0.25
    done
    if ours "$pid"; then kill -KILL -- "-$pid"; fi
  fi
  rm -rf "$run"
  echo "MiniStack is down"
elif [ "$emulator" = docker ]; then
  "${compose[@]}" down --volumes
else
  echo "nothing that make localstack-up started is up"
fi
