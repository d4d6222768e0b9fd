#!/bin/bash
# Runs unit test programs one after another: run-unit.sh RESULT_FILE PROGRAM…
# Shows the output of those that fail only; RESULT_FILE gets "passed failed", counted in tests.
set -u

result=$1
shift
mkdir -p "$(dirname "$result")"
log=$(mktemp)
trap 'rm -f "$log"' EXIT

passed=0
failed=0
bad=()
for program; do
	timeout -k 5 "${UNIT_TIMEOUT:-300}" "$program" >"$log" 2>&1
	status=$?
	ok=$(grep -c '^\[       OK \]' "$log")
	# Named twice: where it failed and in the list at the end.
	wrong=$(grep '^\[  FAILED  \] [A-Za-z_0-9]*$' "$log" | sort -u | wc -l)
	if [ "$status" -ne 0 ]; then
		[ "$status" -eq 124 ] && echo "timed out" >>"$log"
		bad+=("$program")
		# A crash or a sanitizer's verdict counts though no single test failed.
		[ "$wrong" -eq 0 ] && wrong=1
		echo "--- $program (exit status $status)"
		grep -v '^\[ RUN  \|^\[       OK' "$log"
	fi
	passed=$((passed + ok))
	failed=$((failed + wrong))
done

echo "$passed $failed" >"$result"
echo "unit: $# programs, ${#bad[@]} failed; $passed tests passed, $failed failed"
for program in "${bad[@]}"; do
	echo "  failed: $program"
done
[ ${#bad[@]} -eq 0 ]
