#!/bin/bash
# prometheus.sh DIR: fetches Debian's Prometheus, against which the tests hold what the daemon
# shows and sends, and unpacks it below DIR. Nothing is installed, so that no service starts.
set -eu

dir=$1

fetch() {
	apt-get -qq -o APT::Sandbox::User=root download prometheus
}

rm -rf "$dir"
mkdir -p "$dir"
cd "$dir"
fetch || { apt-get -qq update && fetch; }
dpkg -x prometheus_*.deb .
rm prometheus_*.deb
