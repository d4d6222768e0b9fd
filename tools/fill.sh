#!/bin/bash
# fill.sh TEMPLATE MANUAL VERSION: the template with each line @FORM@ replaced by that form of the
# manual's table of keys (deploy/manual.awk) and @VERSION@ by the version.
set -eu

while IFS= read -r line; do
	case $line in
	@OPTIONS@ | @KEYS@ | @CONFIG@ | @COMPLETION@)
		form=${line//@/}
		awk -v form="${form,,}" -f deploy/manual.awk "$2" ;;
	*) printf '%s\n' "${line//@VERSION@/$3}" ;;
	esac
done <"$1"
