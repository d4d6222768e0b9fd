#!/bin/bash
# Starts the daemon for `make run`: with this machine's NVMe drives, or with simulated ones where
# it has none, and says so first. DATA_DIR= moves its data; arguments go to the daemon.
set -eu

: "${DRIVEWATTD:?the daemon to start}"
listen=127.0.0.1:8484
arguments=("$@")
if [ -n "$(ls /sys/class/nvme 2>/dev/null)" ]; then
	echo "Serving this machine's NVMe drives: $(ls /sys/class/nvme | tr '\n' ' ')"
else
	echo "No NVMe drives on this machine: serving 24 simulated ones (--simulate 24)"
	arguments=(--simulate 24 "$@")
fi

if [ "$(id -u)" -eq 0 ]; then
	data_dir=${DATA_DIR:-/var/lib/drivewatt}
else
	data_dir=${DATA_DIR:-$(dirname "$DRIVEWATTD")/run}
fi
mkdir -p "$data_dir"

cat <<END
Try, once it is ready (the password is printed at the first start):
  curl http://$listen/healthz
  curl -u admin http://$listen/api/v1/drives
  curl -u admin http://$listen/api/v1/hosts/local/power
END
exec "$DRIVEWATTD" --listen "$listen" --data-dir "$data_dir" "${arguments[@]}"
