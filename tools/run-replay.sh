#!/bin/bash
# Feeds kept inputs to the fuzz targets: run-replay.sh RESULT_FILE REPLAY_PROGRAM…
set -u

result=$1
shift
mkdir -p "$(dirname "$result")"
passed=0
failed=0
for program; do
	corpus=tests/data/corpus/$(basename "$program")
	if [ ! -d "$corpus" ]; then
		echo "fuzz-replay: $corpus is missing"
		failed=$((failed + 1))
	elif timeout 300 "$program" "$corpus"/*; then
		passed=$((passed + $(find "$corpus" -type f | wc -l)))
	else
		echo "fuzz-replay: $program failed"
		failed=$((failed + 1))
	fi
done
echo "$passed $failed" >"$result"
echo "fuzz-replay: $# targets, $passed inputs passed, $failed targets failed"
[ "$failed" -eq 0 ]
