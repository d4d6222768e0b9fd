#!/bin/bash
# Installs the Debian packages that are missing: `deps.sh run` what building and running needs,
# `deps.sh test` also what the tests need, `deps.sh vm` what `make test-vm` needs,
# `deps.sh bench` what `make bench` needs,
# `deps.sh package` what packaging needs, `deps.sh package-test` also what its tests need. Where root is
# to run the daemon (run, test, bench) it also makes the daemon's account, if that is missing.
set -eu

run_packages=(
	gcc libc6-dev pkg-config python3 python3-yaml
	libsodium-dev uuid-dev libsqlite3-dev zlib1g-dev libcurl4-openssl-dev libjansson-dev
	libmicrohttpd-dev libgnutls28-dev libnvme-dev uthash-dev
	libblkid-dev libssl-dev libsnappy-dev
	fio
	ca-certificates curl jq
)
test_packages=(
	git libcmocka-dev
	python3-pytest python3-pytest-xdist python3-requests python3-jsonschema python3-hypothesis
	python3-trustme
	clang clang-format clang-tidy cppcheck libclang-rt-14-dev
	nvme-cli util-linux iproute2
	ansible-core
)
vm_packages=(
	qemu-system-x86 dmsetup lvm2 mdadm nvme-cli util-linux
	python3-pytest python3-requests python3-jsonschema
)
package_packages=(dpkg-dev)
package_test_packages=(debootstrap iproute2)
bench_packages=(gcc libmicrohttpd-dev libcurl4-openssl-dev libjansson-dev libssl-dev python3 wrk)

is_installed() {
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# As the package does by deploy/drivewatt.sysusers.
make_account() {
	if [ "$(id -u)" -eq 0 ] && ! getent passwd drivewatt >/dev/null; then
		echo "Making the account drivewatt, which the daemon becomes"
		useradd --system --no-create-home --home-dir /var/lib/drivewatt \
			--shell /usr/sbin/nologin --comment 'drivewatt network process' drivewatt
	fi
}

case ${1:-run} in
test) wanted=("${run_packages[@]}" "${test_packages[@]}") ;;
vm) wanted=("${run_packages[@]}" "${vm_packages[@]}") ;;
package) wanted=("${run_packages[@]}" "${package_packages[@]}") ;;
package-test)
	wanted=("${run_packages[@]}" "${package_packages[@]}" "${package_test_packages[@]}") ;;
bench) wanted=("${bench_packages[@]}") ;;
*) wanted=("${run_packages[@]}") ;;
esac
missing=()
for package in "${wanted[@]}"; do
	is_installed "$package" || missing+=("$package")
done
case ${1:-run} in
run | test | bench) make_account ;;
esac
if [ ${#missing[@]} -eq 0 ]; then
	exit 0
fi

if [ "$(id -u)" -eq 0 ]; then
	as_root=()
elif command -v sudo >/dev/null; then
	as_root=(sudo)
else
	echo "These Debian packages are missing; as root, run:" >&2
	echo "  apt-get install --no-install-recommends ${missing[*]}" >&2
	exit 1
fi
echo "Installing: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -q
"${as_root[@]}" apt-get install -q -y --no-install-recommends "${missing[@]}"
