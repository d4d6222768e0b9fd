#!/bin/bash
# vm-packages.sh DIR: fetches what the test machine boots from, Debian's newest cloud kernel and a
# static busybox, and unpacks it below DIR. Nothing is installed.
set -eu

dir=$1

newest_kernel() {
	apt-cache depends --important linux-image-cloud-amd64 2>/dev/null |
		sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p'
}

# The package lists may be missing, or so old that they name what is no longer there.
fetch() {
	local kernel
	kernel=$(newest_kernel)
	[ -n "$kernel" ] && apt-get -qq -o APT::Sandbox::User=root download "$kernel" busybox-static
}

rm -rf "$dir"
mkdir -p "$dir/debs"
cd "$dir/debs"
fetch || { apt-get -qq update && fetch; }
cd ..
for package in debs/*.deb; do
	dpkg -x "$package" .
done
rm -r debs
version=$(ls lib/modules)
cp "boot/vmlinuz-$version" vmlinuz
bin/busybox depmod -b . "$version"
