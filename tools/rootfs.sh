# Sourced by scripts that need a whole Debian 12: in a folder, as a chroot or booted with systemd in
# namespaces of its own. Needs root and debootstrap; booting needs cgroup2.

# rootfs_make DIR: a minimal Debian. ROOTFS_BASE, made where it is missing, is copied.
rootfs_make() {
	if [ ! -e "$ROOTFS_BASE/usr/bin/apt-get" ]; then
		rm -rf "$ROOTFS_BASE"
		debootstrap --variant=minbase --include=ca-certificates bookworm "$ROOTFS_BASE" >&2
	fi
	rm -rf --one-file-system "$1"
	mkdir -p "$(dirname "$1")"
	cp -a "$ROOTFS_BASE" "$1"
	cp -L /etc/resolv.conf "$1/etc/resolv.conf"
}

# rootfs_run DIR COMMAND…: in a chroot with mounts and process ids of its own, and this machine's
# network.
rootfs_run() {
	unshare --mount --propagation private --pid --fork --kill-child bash -euc '
		root=$0
		mount -t proc proc "$root/proc"
		mount --rbind /sys "$root/sys"
		mount --rbind /dev "$root/dev"
		exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
			DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"' "$@"
}

# What becomes process 1: takes the folder as its root and is systemd from then on.
read -r -d '' rootfs_init <<'END' || true
set -eu
root=$0
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
cp -a /dev/{null,zero,full,random,urandom,tty,loop-control} /dev/loop[0-9]* "$root/dev"
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
ln -s /proc/self/fd "$root/dev/fd"
ln -s pts/ptmx "$root/dev/ptmx"
ip link set lo up
cd "$root"
pivot_root . mnt
umount -l /mnt
mount --make-rshared / # as systemd finds it on a machine
exec env -i container=other PATH=/usr/sbin:/usr/bin /lib/systemd/systemd --system \
	systemd.unified_cgroup_hierarchy=1
END

# rootfs_boot DIR: systemd as process 1 of its own processes, mounts, network and control groups.
rootfs_boot() {
	local top root
	root=$(realpath "$1")
	top=$(findmnt -n -t cgroup2 -o TARGET | head -n 1)
	[ -n "$top" ] || { echo "booting needs cgroup2" >&2; return 1; }
	ROOTFS_CGROUP=$(mktemp -d "$top/rootfs-XXXXXX")
	: >"$root/etc/machine-id"
	(
		echo 0 >"$ROOTFS_CGROUP/cgroup.procs"
		exec unshare --mount --propagation private --pid --fork --kill-child --uts --ipc \
			--net --cgroup bash -c "$rootfs_init" "$root" </dev/null >/dev/null 2>&1
	) &
	ROOTFS_HOLDER=$!
	ROOTFS_PID=
	rootfs_until 'unshare has forked' rootfs_find_init
	rootfs_until 'systemd is up' rootfs_is_up
}

rootfs_find_init() {
	[ "$(cat "/proc/$ROOTFS_HOLDER/comm")" = unshare ] || return 1
	ROOTFS_PID=$(cat "/proc/$ROOTFS_HOLDER/task/$ROOTFS_HOLDER/children" 2>/dev/null)
	ROOTFS_PID=${ROOTFS_PID%% *}
	[ -n "$ROOTFS_PID" ]
}

rootfs_is_up() {
	case $(rootfs_in systemctl is-system-running 2>/dev/null) in
	running | degraded) ;;
	*) return 1 ;;
	esac
}

# rootfs_in COMMAND…: in the booted one.
rootfs_in() {
	nsenter -t "$ROOTFS_PID" -a -- env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
		LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}

# Ends everything in it at once: process 1 dies with its holder, all others with process 1.
rootfs_stop() {
	[ -n "${ROOTFS_HOLDER:-}" ] || return 0
	kill -KILL "$ROOTFS_HOLDER" 2>/dev/null || true
	wait "$ROOTFS_HOLDER" 2>/dev/null || true
	ROOTFS_HOLDER=
	rootfs_until 'all processes have ended' rootfs_forget
}

rootfs_forget() {
	find "$ROOTFS_CGROUP" -depth -type d -exec rmdir {} + 2>/dev/null
}

# rootfs_until WHAT COMMAND…: waits until COMMAND succeeds, a minute at most.
rootfs_until() {
	local what=$1 deadline=$((SECONDS + 60))
	shift
	until "$@"; do
		[ $SECONDS -lt $deadline ] || { echo "in vain: $what" >&2; return 1; }
		sleep 0.2
	done
}
