#!/bin/bash
# unpack.sh DIR: fetches the Debian package of DIR's name, which the tests hold the daemon against,
# and unpacks it there. Nothing is installed, so that no service starts.
set -eu

dir=$1
package=${dir##*/}

fetch() {
	apt-get -qq -o APT::Sandbox::User=root download "$package"
}

rm -rf "$dir"
mkdir -p "$dir"
cd "$dir"
fetch || { apt-get -qq update && fetch; }
dpkg -x "$package"_*.deb .
rm "$package"_*.deb
