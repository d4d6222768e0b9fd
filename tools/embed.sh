#!/bin/sh
# Turns files into C: `embed.sh file PATH` one array, `embed.sh table PATH…` the table of all.
set -eu

name_of() {
	basename "$1" | tr -c 'A-Za-z0-9\n' _
}

# What the build made itself is known by its base name.
path_of() {
	case $1 in
	*/gen/*) basename "$1" ;;
	*) echo "$1" ;;
	esac
}

embed_file() {
	name=asset_$(name_of "$1")
	echo '#include <stddef.h>'
	echo "extern const unsigned char $name[];"
	echo "extern const size_t ${name}_len;"
	echo "const unsigned char $name[] = {"
	od -An -v -tx1 "$1" | sed 's/ *\([0-9a-f][0-9a-f]\)/0x\1,/g'
	# A terminating NUL, not counted in the length.
	echo '0x00};'
	echo "const size_t ${name}_len = sizeof($name) - 1;"
}

embed_table() {
	echo '#include "base/asset.h"'
	for path; do
		name=asset_$(name_of "$path")
		echo "extern const unsigned char $name[];"
		echo "extern const size_t ${name}_len;"
	done
	echo 'const struct asset asset_table[] = {'
	for path; do
		name=asset_$(name_of "$path")
		echo "{\"$(path_of "$path")\", $name, &${name}_len},"
	done
	echo '{NULL, NULL, NULL}};'
}

what=$1
shift
"embed_$what" "$@"
