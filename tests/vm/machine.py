"""A test machine: QEMU, booted straight into a shell, with NVMe drives that come and go."""

import json
import os
import re
import socket
import subprocess
import tempfile
import threading
import time

BOOT_S = 180
MARK = "@@ end of command"


class Monitor:
    """QEMU's own line (QMP)."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(path)
        self.file = self.socket.makefile("rw")
        self.events = []
        self._read()  # the greeting
        self("qmp_capabilities")

    def _read(self):
        line = self.file.readline()
        if not line:
            raise AssertionError("QEMU has ended")
        return json.loads(line)

    def __call__(self, command, **arguments):
        self.file.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.file.flush()
        while True:
            answer = self._read()
            if "event" in answer:
                self.events.append(answer)
            elif "error" in answer:
                raise AssertionError(f"{command}: {answer['error']['desc']}")
            else:
                return answer["return"]

    def wait_deleted(self, device):
        """The guest has let the device go."""
        while True:
            for event in self.events:
                if event["event"] == "DEVICE_DELETED" and event["data"].get("device") == device:
                    self.events.remove(event)
                    return
            self.events.append(self._read())


class Shell:
    """A shell in the machine; one command at a time."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.file = self.socket.makefile("rwb")

    def __call__(self, script, check=True):
        """Runs lines of shell until one fails; what they wrote."""
        self.file.write(f"(set -e\n{script}\n) </dev/null 2>&1\necho \"{MARK} $?\"\n".encode())
        self.file.flush()
        output = ""
        while MARK not in output:
            line = self.file.readline()
            if not line:
                raise OSError("the shell has ended")
            output += line.decode(errors="replace")
        output, _, status = output.rpartition(MARK)
        assert not check or int(status) == 0, f"{script}: status {int(status)}\n{output}"
        return output


class Machine:
    def __init__(self, packages, initramfs, console, arguments):
        """packages and initramfs are what tools/vm-*.sh made; arguments(directory) are QEMU's for the
        drives, whose disks may lie in the directory as long as the machine lives."""
        self.console = console
        self.directory = tempfile.TemporaryDirectory(prefix="drivewatt-vm-")
        monitor = os.path.join(self.directory.name, "monitor")
        # Dies with this thread, however that ends.
        self.process = subprocess.Popen(
            [
                *("setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64"),
                *("-accel", "tcg,thread=multi", "-machine", "q35", "-cpu", "qemu64", "-smp", "2", "-m", "1024"),
                *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
                *("-serial", "file:" + console, "-qmp", f"unix:{monitor},server=on,wait=off"),
                *("-kernel", os.path.join(packages, "vmlinuz"), "-initrd", initramfs),
                *("-append", "console=ttyS0 panic=-1 quiet mitigations=off nokaslr"),
                *("-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net,romfile="),
                *arguments(self.directory.name),
            ],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.monitor = self._until_booted(lambda: os.path.exists(monitor) and Monitor(monitor))
        port = self.forward(1)
        self.run = self._until_booted(lambda: self._shell(port))

    def _until_booted(self, attempt):
        deadline = time.monotonic() + BOOT_S
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise AssertionError(f"QEMU has ended: {self.process.stderr.read()}")
            try:
                result = attempt()
                if result:
                    return result
            except OSError:
                pass
            threading.Event().wait(0.05)
        raise AssertionError(f"the machine did not boot, see {self.console}")

    @staticmethod
    def _shell(port):
        """QEMU takes the connection before anybody in the machine does."""
        shell = Shell(port)
        shell("true")
        return shell

    def forward(self, port):
        """A port of this host that leads to the machine's."""
        self.monitor("human-monitor-command", **{"command-line": f"hostfwd_add net tcp:127.0.0.1:0-:{port}"})
        table = self.monitor("human-monitor-command", **{"command-line": "info usernet"})
        return int(re.search(rf"HOST_FORWARD\] +\d+ +127\.0\.0\.1 +(\d+) +\S+ +{port} ", table)[1])

    def close(self):
        self.process.kill()
        self.process.wait()
        self.directory.cleanup()
