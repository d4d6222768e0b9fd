import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "http")]

import drives  # noqa: E402
from guest import Drive, GuestService, wait_until  # noqa: E402
from machine import Machine  # noqa: E402

DIRECTORY = os.environ.get("VM", "build/vm")
PACKAGES = os.environ.get("VM_PACKAGES", os.path.join(DIRECTORY, "packages"))
CONSOLE = os.path.join(DIRECTORY, "console.log")
LOG = os.path.join(DIRECTORY, "drivewattd.log")
FLAGS = (
    *("--allow-destructive", "--allow-in-use", "--settle", "0"),
    # What comes and goes is known from the kernel.
    *("--rescan", "24h", "--reconcile", "500ms", "--health", "500ms"),
)


@pytest.fixture(scope="session")
def machine():
    """One machine for all tests; each leaves its drives as it found them."""
    initramfs = os.path.join(DIRECTORY, "initramfs.cpio")
    machine = Machine(PACKAGES, initramfs, CONSOLE, drives.arguments)
    yield machine
    machine.close()


@pytest.fixture(scope="session")
def service(machine):
    service = GuestService(machine, *FLAGS)
    try:
        yield service.start()
        service.stop()
    finally:
        with open(LOG, "w", encoding="utf-8") as f:
            f.write(service.log())


def pytest_terminal_summary(terminalreporter, exitstatus):
    if exitstatus:
        terminalreporter.write_line(f"what the machine and the daemon said: {CONSOLE}, {LOG}")


@pytest.fixture(scope="session")
def find(service):
    """Finds drives by the names of drives.py: the only one, or the n-th of several."""

    def find(name, n=0):
        def found():
            serial = drives.serial(name)
            ids = [d["id"] for d in service.drives() if d["serial"] == serial and d["state"] == "live"]
            return ids[n:] or None

        drive = Drive(service, wait_until(found, what=f"{name} is listed")[0])
        drive.wait_identified()
        return drive

    return find


@pytest.fixture(scope="session")
def light(service):
    """Workloads that an emulated machine can bear, by their pattern."""
    for pattern in ("read", "write", "randread"):
        shape = {"pattern": pattern, "block_bytes": 65536, "iodepth": 4, "jobs": 1}
        assert service.put(f"/api/v1/workloads/light-{pattern}", shape).status_code == 201
    return "light-{}".format
