#!/bin/bash
# Runs pytest and keeps "passed failed": run-pytest.sh RESULT_FILE PYTEST ARGUMENT…
set -u

result=$1
shift
mkdir -p "$(dirname "$result")"
rm -f "$result" "$result.xml"
"$@" --junitxml="$result.xml"
status=$?

count() {
	local n
	n=$(sed -n "s/.*<testsuite [^>]*$1=\"\([0-9]*\)\".*/\1/p" "$result.xml" | head -n 1)
	echo "${n:-0}"
}
bad=$(($(count errors) + $(count failures) + $(count skipped)))
echo "$(($(count tests) - bad)) $bad" >"$result"
exit $status
