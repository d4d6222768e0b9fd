"""Made-up NVMe drives for the whole daemon: tests/support/bed/bed.sh held open for a test."""

import contextlib
import os
import subprocess
import sys

from service import wait_until

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPT = os.path.join(HERE, "..", "support", "bed", "bed.sh")
TOOLS = os.environ.get("BED", "build/bed")


class Bed:
    """A mount namespace with `count` drives, nvme0 …; programs are started into it."""

    def __init__(self, count):
        assert os.geteuid() == 0, "the bed makes mount namespaces and loop devices: run as root"
        self.count = count
        self.holder = subprocess.Popen(
            [SCRIPT, TOOLS, str(count), "sh", "-c", 'echo "$$ $BED_STATE $LD_PRELOAD"; exec cat'],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid, state, preload = self.holder.stdout.readline().split()
        self.environment = {
            "BED_STATE": state,
            "LD_PRELOAD": preload,
            "ASAN_OPTIONS": ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "verify_asan_link_order=0"])),
        }

        self.size = os.stat(os.path.join(os.path.dirname(state), "ns0")).st_size

    def close(self):
        self.holder.stdin.close()
        assert self.holder.wait(30) == 0

    # -- from inside -------------------------------------------------------------------------------

    @property
    def prefix(self):
        """In front of a command line: runs it in the bed, under the same process id."""
        # In a chroot, the namespace's own root is not ours.
        return ["nsenter", f"--mount=/proc/{self.pid}/ns/mnt", f"--root=/proc/{self.pid}/root", "--"]

    def run(self, *command, check=True):
        """Runs a program in the bed; its output."""
        env = {**os.environ, **self.environment}
        return subprocess.run([*self.prefix, *command], env=env, check=check, capture_output=True, text=True).stdout

    @contextlib.contextmanager
    def _holding(self, *command):
        holder = subprocess.Popen([*self.prefix, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert holder.stdout.readline() == "held\n"
        try:
            yield holder.pid
        finally:
            holder.stdin.close()
            assert holder.wait(30) == 0

    def held(self, path, flags=os.O_RDONLY):
        """Somebody has opened the device; gives the process."""
        code = f"import os, sys; os.open({path!r}, {flags}); print('held', flush=True); sys.stdin.read()"
        return self._holding(sys.executable, "-c", code)

    def mounted_elsewhere(self, path, directory):
        """Somebody has mounted the device in a mount namespace of his own."""
        script = 'mount "$0" "$1" && echo held && read -r _; umount "$1"'
        return self._holding("unshare", "--mount", "sh", "-c", script, path, directory)

    # -- the drives' other side --------------------------------------------------------------------

    def _bedctl(self, *args):
        env = {**os.environ, "BED_STATE": self.environment["BED_STATE"]}
        tool = os.path.join(TOOLS, "bedctl")
        return subprocess.run([tool, *map(str, args)], env=env, check=True, capture_output=True, text=True).stdout

    def get(self, drive, field):
        return int(self._bedctl("get", drive, field))

    def set(self, drive, **fields):
        """power, power_fixed, temperature_k, critical_warning, fail_errno, fail_status, hang …"""
        for name, value in fields.items():
            self._bedctl("set", drive, name, value)

    def _resize(self, drive, size):
        os.truncate(os.path.join(os.path.dirname(self.environment["BED_STATE"]), f"ns{drive}"), size)
        self.run("losetup", "-c", f"/dev/nvme{drive}n1")

    def unplug(self, drive):
        """The controller goes from sysfs and answers nothing any more; who has the block device open finds
        it empty."""
        self.set(drive, fail_errno=19)
        self._resize(drive, 0)
        hidden = f"/sys/class/nvme-subsystem/hidden{drive}"
        self.run("mv", f"/sys/class/nvme/nvme{drive}", hidden)
        self.run("rm", f"/sys/class/nvme-subsystem/nvme-subsys{drive}/nvme{drive}")

    def plug(self, drive):
        """Back again, at its default power state as after a power cycle."""
        self.set(drive, fail_errno=0, power=0)
        self._resize(drive, self.size)
        self.run("mv", f"/sys/class/nvme-subsystem/hidden{drive}", f"/sys/class/nvme/nvme{drive}")
        self.run(
            "ln", "-s", f"../../nvme/nvme{drive}", f"/sys/class/nvme-subsystem/nvme-subsys{drive}/nvme{drive}"
        )

    def attribute(self, drive, name, value):
        """What the kernel shows of the controller."""
        self.run("sh", "-c", f"echo '{value}' >/sys/class/nvme/nvme{drive}/{name}")

    def loop(self, drive):
        """The loop device behind its first namespace."""
        return os.path.basename(self.run("readlink", f"/sys/class/block/nvme{drive}n1").strip())

    def add_namespace(self, drive, nsid, loop):
        name = f"nvme{drive}n{nsid}"
        self.run(
            *("sh", "-ec"),
            f"mkdir /sys/class/nvme/nvme{drive}/{name}; echo {nsid} >/sys/class/nvme/nvme{drive}/{name}/nsid;"
            f"ln -sfn ../../devices/virtual/block/{loop} /sys/class/block/{name}; cp -a /dev/{loop} /dev/{name}",
        )
        self.set(drive, namespaces=max(nsid, self.get(drive, "namespaces")))

    def remove_namespace(self, drive, nsid):
        name = f"nvme{drive}n{nsid}"
        self.run("rm", "-r", f"/sys/class/nvme/nvme{drive}/{name}", f"/sys/class/block/{name}", f"/dev/{name}")

    def twin(self, drive, other):
        """From now on it is a second controller of the other's subsystem and reaches the same namespace, which
        hangs on the subsystem then."""
        serial, nqn = self._bedctl("twin", drive, other).split()
        self.attribute(drive, "serial", serial)
        self.attribute(drive, "subsysnqn", nqn)
        self.remove_namespace(drive, 1)
        self.run(
            *("sh", "-ec"),
            f"cd /sys/class; rm -r nvme-subsystem/nvme-subsys{drive}; mkdir nvme/nvme{drive}/nvme{other}c{drive}n1;"
            f"ln -s ../../nvme/nvme{drive} nvme-subsystem/nvme-subsys{other}/nvme{drive};"
            f"mv nvme/nvme{other}/nvme{other}n1 nvme/nvme{other}/nvme{other}c{other}n1;"
            f"echo 1 >nvme/nvme{drive}/nvme{other}c{drive}n1/nsid",
        )


class Drive:
    """One drive as the daemon shows it and as the bed has it."""

    def __init__(self, service, bed, number):
        self.service = service
        self.bed = bed
        self.number = number
        self.serial = f"BED{number:04}"
        self.item = next(d for d in service.drives() if d["serial"] == self.serial)
        self.id = self.item["id"]
        self.href = self.item["href"]
        self.desired = self.href + "/power/desired"

    def now(self):
        return self.service.json(self.href)

    def power(self):
        return self.service.json(self.href + "/power")

    def device_state(self):
        return self.bed.get(self.number, "power") & 0x1F

    def run(self, workload, **fields):
        return self.service.run(drives=[self.id], workload=workload, runtime_s=1, ramp_s=0, **fields)

    def refusal(self, workload, **fields):
        """Why a run is refused: at once, or, where only the helper knows better, when it would start."""
        body = {"drives": [self.id], "workload": workload, "runtime_s": 1, **fields}
        r = self.service.post("/api/v1/benchmarks", body)
        if r.status_code != 202:
            assert r.status_code in (400, 403, 409), r.text
            return r.text
        run = wait_until(lambda: (lambda x: x if x["ended_at"] else None)(self.service.json(r.headers["Location"])))
        assert run["state"] == "failed"
        return run["reason"]
