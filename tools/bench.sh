#!/bin/bash
# Measures the daemon beside bare libmicrohttpd and libcurl and prints the tables of docs/performance.md.
# Needs no root once the packages are there; leaves nothing behind. `--quick` takes fewer rounds.
set -eu

: "${DRIVEWATTD:?the daemon to measure}"
here=$(dirname "$0")
ulimit -n "$(ulimit -Hn)" # a descriptor for each of 1,024 connections
"$here"/deps.sh bench
dir=$(mktemp -d "${TMPDIR:-/tmp}"/drivewatt-bench-XXXXXX)
trap 'rm -rf "$dir"' EXIT
gcc -O2 -Wall -Wextra -o "$dir"/bare_mhd "$here"/bench/bare_mhd.c -lmicrohttpd
gcc -O2 -Wall -Wextra -o "$dir"/bare_curl "$here"/bench/bare_curl.c -lcurl -ljansson
gcc -O2 -Wall -Wextra -D_GNU_SOURCE -o "$dir"/bmc_fleet "$here"/bench/bmc_fleet.c -lssl -lcrypto
PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 "$here"/bench/bench.py "$dir" "$@"
