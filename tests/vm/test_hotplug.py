"""Drives that are pulled and plugged while the daemon runs."""

import drives
import pytest
from guest import wait_until


@pytest.fixture
def slot(machine, find):
    """The slot of the mobile drive, which is in it again afterwards."""
    slot = Slot(machine)
    find(slot.holds)
    yield slot
    slot.swap("mobile")
    find("mobile")


class Slot:
    def __init__(self, machine):
        self.machine = machine
        self.holds = "mobile"

    def pull(self):
        if self.holds:
            self.machine.monitor("device_del", id=self.holds)
            self.machine.monitor.wait_deleted(self.holds)
        self.holds = None

    def plug(self, name):
        self.machine.monitor("device_add", **{**drives.plain(name), "bus": "mobile-slot"})
        self.holds = name

    def swap(self, name):
        if self.holds != name:
            self.pull()
            self.plug(name)


def test_a_drive_comes_back_as_itself_and_gets_what_is_desired(service, find, slot):
    drive = find("mobile")
    service.patch(drive.href, {"labels": {"bay": "7"}})
    assert service.put(drive.desired, {"state": 0}).status_code == 201
    slot.pull()
    drive.wait_state("gone")
    assert service.put(drive.desired, {"state": 0}).status_code == 503
    assert service.json(drive.desired)["state"] == 0
    assert service.post("/api/v1/benchmarks", {"drives": [drive.id], "workload": "rand-read-4k"}).status_code >= 400
    slot.plug("mobile")
    drive.wait_state("live")
    wait_until(lambda: drive.power()["in_sync"] and drive.power()["state"] == 0, what="what is desired is in force")
    assert drive.now()["labels"] == {"bay": "7"}
    assert service.delete(drive.desired).status_code == 204
    service.patch(drive.href, {"labels": {}})


def test_another_drive_in_its_slot_is_another(find, slot):
    mobile = find("mobile")
    address = mobile.now()["pci_address"]
    slot.swap("spare")
    spare = find("spare")
    assert spare.id != mobile.id and spare.now()["pci_address"] == address
    mobile.wait_state("gone")
    slot.swap("mobile")
    spare.wait_state("gone")
    mobile.wait_state("live")


@pytest.fixture
def start(service):
    """Starts a run of many minutes; gives where it is once fio reads."""

    def start(*those):
        body = {"drives": [drive.id for drive in those], "workload": "rand-read-4k", "runtime_s": 600, "ramp_s": 0}
        r = service.post("/api/v1/benchmarks", body)
        assert r.status_code == 202, r.text
        path = r.headers["Location"]
        wait_until(lambda: service.json(path)["live_read_bytes_per_s"], what="fio reads")
        return path

    return start


def end_of(service, path):
    wait_until(lambda: service.json(path)["ended_at"], what="the run is over")
    return service.json(path)


def test_a_run_ends_with_its_drive(service, find, slot, start):
    drive = find("mobile")
    path = start(drive)
    slot.pull()
    run = end_of(service, path)
    assert run["state"] == "failed" and run["reason"] == f"drive {drive.id} (serial {drive.serial}) went away"
    drive.wait_state("gone")


def test_a_run_ends_with_one_of_its_drives_and_keeps_the_others_figures(service, find, slot, start):
    drive, other = find("mobile"), find("steady")
    path = start(drive, other)
    slot.pull()
    run = end_of(service, path)
    assert run["state"] == "failed" and run["reason"] == f"drive {drive.id} (serial {drive.serial}) went away"
    gone, kept = run["result"]["drives"]
    assert gone["gone_at"] and kept["gone_at"] is None
    assert kept["read"]["iops"] > 0 and kept["read"]["latency_us"]["p50"] > 0
