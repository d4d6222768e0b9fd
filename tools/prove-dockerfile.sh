#!/bin/bash
# prove-dockerfile.sh BUILD: carries out deploy/Dockerfile where there is no container engine, each
# stage in a Debian of its own, then starts what came out with the capabilities of
# docs/operations.md. Needs root and debootstrap; ROOTFS_BASE= may name a minimal Debian to copy.
# Understands what that file uses: one line an instruction, COPY of all or --from a stage.
set -eu

build=$(realpath "$1")
. tools/rootfs.sh
: "${ROOTFS_BASE:=$build/bookworm}"
work=$build/docker
capabilities=-all,+sys_admin,+setuid,+setgid,+chown,+setpcap
environment=()
directory=/
stage=

# from IMAGE [AS NAME]
from() {
	[ "$1" = debian:bookworm-slim ] || { echo "what is $1?" >&2; exit 1; }
	stage=$work/${3:-final}
	environment=()
	directory=/
	rootfs_make "$stage"
}

run() {
	echo "RUN $1"
	rootfs_run "$stage" env "${environment[@]}" sh -c "cd $directory && $1" >>"$work/log" 2>&1 || {
		tail -n 20 "$work/log" >&2
		exit 1
	}
}

# copy . TO | copy --from=NAME FROM TO
copy() {
	case $1 in
	--from=*) cp -a "$work/${1#--from=}$2" "$stage$3" ;;
	.)
		mkdir -p "$stage$2"
		git ls-files -z | tar -c --null -T - | tar -x -C "$stage$2" --no-same-owner
		;;
	*) echo "COPY $* is not understood" >&2; exit 1 ;;
	esac
}

step() {
	local instruction=$1 rest=$2 words
	read -ra words <<<"$rest"
	case $instruction in
	FROM) from "${words[@]}" ;;
	ARG) environment+=("$rest") ;;
	ENV) environment+=("${words[@]}") ;;
	COPY) copy "${words[@]}" ;;
	WORKDIR) directory=$rest ;;
	RUN) run "$rest" ;;
	VOLUME | EXPOSE) ;;
	HEALTHCHECK) health=${rest#*CMD } ;;
	ENTRYPOINT) entry=$(sed 's/[]["]//g; s/,/ /g' <<<"$rest") ;;
	*) echo "$instruction is not understood" >&2; exit 1 ;;
	esac
}

rm -rf --one-file-system "$work"
mkdir -p "$work"
while read -r instruction rest; do
	step "$instruction" "$rest"
done < <(sed -e ':join' -e '/\\$/ { N; s/\\\n[ \t]*//; b join }' -e '/^#/d; /^$/d' deploy/Dockerfile)

# Twice, as one that is started again with its volume.
for start in first second; do
	# shellcheck disable=SC2016
	unshare --net bash -euc '
		. tools/rootfs.sh
		ip link set lo up
		rootfs_run "$@"' "$0" "$stage" env "${environment[@]}" DRIVEWATT_SIMULATE=2 bash -euc '
			setpriv --bounding-set "$0" --no-new-privs $1 &
			daemon=$!
			for i in $(seq 100); do
				$2 && break
				sleep 0.2
			done
			$2
			kill $daemon
			wait $daemon' "$capabilities" "$entry" "$health" >"$work/out" 2>&1 || {
		cat "$work/out" >&2
		exit 1
	}
	grep -q 'ready on https://0.0.0.0:8484' "$work/out"
	echo "ok - the $start start answers"
done
rm -rf --one-file-system "$work"
