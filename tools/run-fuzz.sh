#!/bin/bash
# Fuzzes each target for a while: run-fuzz.sh BUILD_DIR SECONDS TARGET…
# New inputs gather in BUILD_DIR/corpus/; what crashes lands in BUILD_DIR/ by libFuzzer's name.
set -eu

dir=$1
seconds=$2
shift 2
for target; do
	mkdir -p "$dir/corpus/$target"
	kept=tests/data/corpus/$target
	"$dir/fuzzers/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 \
		-artifact_prefix="$dir/$target-" -print_final_stats=1 \
		"$dir/corpus/$target" $([ -d "$kept" ] && echo "$kept")
done
