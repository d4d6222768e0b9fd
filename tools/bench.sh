#!/bin/bash
# Measures the daemon beside bare libmicrohttpd and prints the tables of docs/performance.md.
# Needs no root once the packages are there; leaves nothing behind. `--quick` takes fewer rounds.
set -eu

: "${DRIVEWATTD:?the daemon to measure}"
here=$(dirname "$0")
ulimit -n "$(ulimit -Hn)" # a descriptor for each of 1,024 connections
"$here"/deps.sh bench
dir=$(mktemp -d "${TMPDIR:-/tmp}"/drivewatt-bench-XXXXXX)
trap 'rm -rf "$dir"' EXIT
gcc -O2 -Wall -Wextra -o "$dir"/bare_mhd "$here"/bench/bare_mhd.c -lmicrohttpd
PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 "$here"/bench/bench.py "$dir" "$@"
