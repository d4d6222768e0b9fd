#!/bin/bash
# For `make run`: `run.sh announce` says first what will be served, this machine's NVMe drives or
# simulated ones where it has none; `run.sh serve …` starts the daemon with them. LISTEN= and
# DATA_DIR= move it; further arguments go to the daemon.
set -eu

controllers=$(ls /sys/class/nvme 2>/dev/null | tr '\n' ' ' || true)

if [ "$1" = announce ]; then
	if [ -n "$controllers" ]; then
		echo "Serving this machine's NVMe drives: $controllers"
	else
		echo "No NVMe drives on this machine: serving 24 simulated ones (--simulate 24)"
	fi
	exit 0
fi
shift

: "${DRIVEWATTD:?the daemon to start}"
listen=${LISTEN:-127.0.0.1:8484}
arguments=("$@")
[ -n "$controllers" ] || arguments=(--simulate 24 "$@")
if [ "$(id -u)" -eq 0 ]; then
	data_dir=${DATA_DIR:-/var/lib/drivewatt}
else
	data_dir=${DATA_DIR:-${XDG_DATA_HOME:-$HOME/.local/share}/drivewatt}
fi
mkdir -p "$data_dir"

cat <<END
Data are kept in $data_dir. Once it is ready, try (curl asks for the password):
  curl -u admin http://$listen/api/v1/drives
  curl -u admin -H 'Content-Type: application/json' -d '{"selector":{},"workload":"seq-read-128k","power_state":1,"runtime_s":30,"ramp_s":3}' http://$listen/api/v1/benchmarks
  curl -u admin 'http://$listen/api/v1/hosts/local/energy?from=-10m&step=10s'
END
exec "$DRIVEWATTD" --listen "$listen" --data-dir "$data_dir" "${arguments[@]}"
