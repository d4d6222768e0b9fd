#!/bin/bash
# bed.sh DIR COUNT CMD…: runs CMD in a mount namespace of its own with COUNT made-up NVMe drives,
# nvme0 …, as /sys and /dev show them; their namespaces are loop devices that take real I/O.
# DIR has nvme_shim.so and bedctl. CMD's environment has what the drives need: LD_PRELOAD and
# BED_STATE. Needs root. Nothing is left behind when CMD has ended.
set -eu

dir=$(realpath "$1")
count=$2
shift 2
mib=${BED_MIB:-64}

if [ -z "${BED_TOP:-}" ]; then
	[ "$(id -u)" -eq 0 ] || { echo "bed.sh: needs root" >&2; exit 1; }
	BED_TOP=$(mktemp -d "${TMPDIR:-/tmp}/drivewatt-bed-XXXXXX")
	loops=()
	clean() {
		[ ${#loops[@]} -eq 0 ] || losetup -d "${loops[@]}"
		rm -rf "$BED_TOP"
	}
	trap clean EXIT
	for ((i = 0; i < count; i++)); do
		truncate -s "${mib}M" "$BED_TOP/ns$i"
		loops+=("$(losetup --show -f "$BED_TOP/ns$i")")
	done
	export BED_TOP BED_LOOPS="${loops[*]}" BED_STATE=$BED_TOP/state
	# Not exec: the loop devices must be given back. TERM goes on to CMD.
	unshare --mount --propagation private "$0" "$dir" "$count" "$@" <&0 &
	child=$!
	trap 'kill -TERM $child 2>/dev/null || true' TERM INT
	status=0
	while kill -0 $child 2>/dev/null; do
		wait $child && status=0 || status=$?
	done
	exit "$status"
fi

top=$BED_TOP/fs
mkdir "$top"
mount -t tmpfs tmpfs "$top"
mkdir "$top/dev" "$top/class"

# What else there is stays visible: relative links work in the new place as well.
cp -dR /sys/class/. "$top/class" 2>/dev/null || true
mkdir -p "$top/class/nvme" "$top/class/nvme-subsystem"
for node in null zero full random urandom tty fd stdin stdout stderr loop-control; do
	cp -a "/dev/$node" "$top/dev/" 2>/dev/null || true
done
cp -a /dev/loop[0-9]* "$top/dev/"
for mounted in shm pts; do
	mkdir "$top/dev/$mounted"
	mount --bind "/dev/$mounted" "$top/dev/$mounted" 2>/dev/null || true
done

read -ra loops <<<"$BED_LOOPS"
i=0
while read -r serial nqn cntlid firmware model; do
	controller=$top/class/nvme/nvme$i
	subsystem=$top/class/nvme-subsystem/nvme-subsys$i
	mkdir -p "$controller/nvme${i}n1" "$subsystem"
	put() { echo "$2" >"$controller/$1"; }
	put address "0000:$(printf %02x $((i + 1))):00.0"
	put cntlid "$cntlid"
	put cntrltype io
	put firmware_rev "$firmware"
	put model "$model"
	put numa_node -1
	put queue_count 3
	put serial "$serial"
	put sqsize 1023
	put state live
	put subsysnqn "$nqn"
	put transport pcie
	put "nvme${i}n1/nsid" 1
	cp "$controller"/{model,serial,firmware_rev,subsysnqn} "$subsystem"
	echo nvm >"$subsystem/subsystype"
	ln -s "../../nvme/nvme$i" "$subsystem/nvme$i"
	loop=${loops[i]#/dev/}
	ln -s "../../devices/virtual/block/$loop" "$top/class/block/nvme${i}n1"
	# A controller needs a character device that can be opened, no more: the shim answers.
	mknod -m 600 "$top/dev/nvme$i" c 1 3
	cp -a "/dev/$loop" "$top/dev/nvme${i}n1"
	i=$((i + 1))
done < <("$dir/bedctl" init "$count")

mount --bind "$top/class" /sys/class
mount --bind "$top/dev" /dev

# The shim comes before a sanitizer's runtime; it calls nothing of the runtime's.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0"
export LD_PRELOAD="$dir/nvme_shim.so"
exec "$@"
