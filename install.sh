#!/bin/sh
# Installs longshore for this user: curl -fsSL URL/install.sh | sh
# LONGSHORE_URL is where the release lies, unless GitHub's newest; PREFIX is the folder that
# gets the program, unless ~/.local/bin.
set -eu

fail() {
  echo "install.sh: $*" >&2
  exit 1
}

# The whole script is read before any of it runs: a download that breaks off installs nothing.
install_longshore() {
  url=${LONGSHORE_URL:-https://github.com/longshore/longshore/releases/latest/download}
  to=${PREFIX:-${HOME:?say by PREFIX where to install, as HOME is not set}/.local/bin}
  os=$(uname -s)
  case $os in
    Linux) os=linux ;;
    Darwin) os=darwin ;;
    *) fail "there is no program for $os: build it, as README.md says" ;;
  esac
  arch=$(uname -m)
  case $arch in
    x86_64 | amd64) arch=amd64 ;;
    aarch64 | arm64) arch=arm64 ;;
    *) fail "there is no program for $arch: build it, as README.md says" ;;
  esac
  if command -v sha256sum >/dev/null; then
    sum=sha256sum
  elif command -v shasum >/dev/null; then
    sum='shasum -a 256'
  else
    fail "this needs sha256sum or shasum, to verify the download"
  fi
  command -v curl >/dev/null || command -v wget >/dev/null || fail "this needs curl or wget"

  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  trap 'exit 1' HUP INT TERM
  download SHA256SUMS
  line=$(grep "  longshore_[^_/]*_${os}_${arch}\.tar\.gz\$" "$work/SHA256SUMS") ||
    fail "$url/SHA256SUMS names no archive for $os on $arch"
  [ "$(printf '%s\n' "$line" | wc -l)" -eq 1 ] || fail "$url/SHA256SUMS names several archives for $os on $arch"
  archive=${line#*  }
  download "$archive"
  is=$($sum <"$work/$archive")
  [ "${is%% *}" = "${line%% *}" ] ||
    fail "$url/$archive does not have the checksum of SHA256SUMS: it was damaged or exchanged, and is not installed"

  tar -xzf "$work/$archive" -C "$work"
  mkdir -p "$to"
  # Renamed into place, so that a program that runs is not written to.
  cp "$work/${archive%.tar.gz}/longshore" "$to/.longshore.new"
  chmod 755 "$to/.longshore.new"
  mv "$to/.longshore.new" "$to/longshore"
  echo "$to/longshore: $("$to/longshore" version)"
  case :$PATH: in
    *":$to:"*) ;;
    *) echo "Add $to to your PATH." ;;
  esac
}

download() {
  if command -v curl >/dev/null; then
    curl -fsSL -o "$work/$1" "$url/$1" || fail "$url/$1 cannot be downloaded"
  else
    wget -q -O "$work/$1" "$url/$1" || fail "$url/$1 cannot be downloaded"
  fi
}

install_longshore
