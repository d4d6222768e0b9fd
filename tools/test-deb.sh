#!/bin/bash
# test-deb.sh BUILD: installs the package in a fresh Debian 12 that systemd has booted, uses the
# service, upgrades, removes and purges it. Needs root and debootstrap; ROOTFS_BASE= may name a
# minimal Debian to copy instead of making one.
set -eu

build=$(realpath "$1")
. tools/rootfs.sh
: "${ROOTFS_BASE:=$build/bookworm}"
root=$build/deb/root
url=http://127.0.0.1:8484
password=from-the-credential-store
passed=0

ok() {
	passed=$((passed + 1))
	echo "ok $passed - $1"
}

# check WHAT COMMAND…: in the booted Debian.
check() {
	local what=$1
	shift
	if ! rootfs_in "$@" >"$build/deb/output" 2>&1; then
		echo "not ok - $what: $*" >&2
		cat "$build/deb/output" >&2
		rootfs_in journalctl --no-pager -u drivewattd -n 20 >&2 || true
		exit 1
	fi
	ok "$what"
}

api() {
	local path=$1
	shift
	rootfs_in curl -s --fail-with-body --retry 20 --retry-connrefused --retry-delay 1 \
		-u "admin:$password" -H 'Content-Type: application/json' "$@" "$url$path"
}

# contains WHAT TEXT PATH…: the answer has TEXT in it.
contains() {
	local what=$1 text=$2 answer
	shift 2
	answer=$(api "$@") || true
	case $answer in
	*"$text"*) ok "$what" ;;
	*)
		echo "not ok - $what: no $text in $answer" >&2
		exit 1
		;;
	esac
}

run_is_over() {
	api "$1" | grep -qE '"state":"(completed|failed|cancelled)"'
}

old=$(tools/make-deb.sh "$build" 0.1)
new=$(tools/make-deb.sh "$build" 0.2)
trap rootfs_stop EXIT
rootfs_make "$root"
cp "$old" "$new" "$root/root"
old=/root/$(basename "$old")
new=/root/$(basename "$new")
# What it depends on is fetched before: the booted one has no network.
rootfs_run "$root" apt-get -q update >"$build/deb/apt.log"
rootfs_run "$root" apt-get -q -y --no-install-recommends install systemd man-db curl sqlite3 \
	>>"$build/deb/apt.log" 2>&1
rootfs_run "$root" apt-get -q -y --no-install-recommends satisfy \
	"$(dpkg-deb -f "$root$old" Depends)" >>"$build/deb/apt.log" 2>&1
install -d -m 700 "$root/etc/credstore"
(umask 077 && echo "$password" >"$root/etc/credstore/drivewatt.admin-password")
rootfs_boot "$root"

# --- install ---
check 'it installs' dpkg -i "$old"
check 'the account is there' getent passwd drivewatt
check 'the service is enabled' systemctl is-enabled drivewattd
check 'the service runs' systemctl is-active drivewattd
check 'it answers' curl -sf "$url/healthz"
check 'the unit is correct' systemd-analyze verify --recursive-errors=no drivewattd.service
check 'the pages are found' man -w 8 drivewattd
check 'every file is as packaged' dpkg --verify drivewatt

# --- use ---
check 'the configuration is changed' sed -i 's/^#simulate =.*/simulate = 2/' \
	/etc/drivewatt/drivewatt.conf
check 'it starts anew' systemctl restart drivewattd
contains 'it has two drives' '"drives":2' /api/v1/system
drive=$(api /api/v1/drives | grep -o '"id":"[^"]*"' | head -n 1 | cut -d '"' -f 4)
contains 'a power state is set' '"observed_state":1' "/api/v1/drives/$drive/power/desired" \
	-X PUT -d '{"state":1}'
run=$(api /api/v1/benchmarks -i -d '{"selector":{},"workload":"seq-read-128k","runtime_s":1}' |
	tr -d '\r' | sed -n 's/^Location: //p')
rootfs_until 'the benchmark ends' run_is_over "$run"
contains 'a benchmark completes within the sandbox' '"state":"completed"' "$run"
check 'a copy is made while it runs' sqlite3 /var/lib/drivewatt/control.db '.backup /root/control.db'

# --- upgrade ---
check 'it is upgraded' dpkg -i "$new"
check 'the service runs again' systemctl is-active drivewattd
contains 'the benchmark is still there' '"state":"completed"' "$run"
contains 'the wish is still there' '"state":1' "/api/v1/drives/$drive/power/desired"
check 'the configuration is still there' grep -qx 'simulate = 2' /etc/drivewatt/drivewatt.conf

# --- remove ---
check 'it is removed' dpkg -r drivewatt
check 'the service is gone' sh -c '! systemctl is-active -q drivewattd && ! pgrep drivewattd'
check 'the data stays' test -s /var/lib/drivewatt/control.db
check 'the configuration stays' test -s /etc/drivewatt/drivewatt.conf
check 'it is installed again' dpkg -i "$new"
contains 'the data is found again' '"state":"completed"' "$run"

# --- purge ---
check 'it is purged' dpkg -P drivewatt
check 'the data is gone' test ! -e /var/lib/drivewatt
check 'the configuration is gone' test ! -e /etc/drivewatt
check 'nothing of it is left' sh -c \
	'! find /etc /usr /var -xdev -path "*drivewatt*" ! -path "*/credstore/*" ! -path "/var/log/*" \
	! -path "/var/cache/*" ! -path "/var/lib/systemd/*" | grep .'
rootfs_stop
trap - EXIT
rm -rf --one-file-system "$root"
echo "$passed passed, 0 failed"
