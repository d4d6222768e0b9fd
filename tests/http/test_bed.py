"""The whole daemon on made-up NVMe drives: real libnvme, real fio, faults at will."""

import contextlib
import os
import subprocess

import pytest
from bed import Bed, Drive
from service import Service, wait_until

COUNT = 3


@pytest.fixture(scope="module")
def bed():
    bed = Bed(COUNT)
    yield bed
    bed.close()


def service_in(bed):
    service = Service(
        "--allow-destructive",
        "--allow-in-use",
        *("--command-timeout", "1500ms", "--drive-timeout", "2s", "--settle", "50ms"),
        *("--rescan", "300ms", "--reconcile", "300ms", "--health", "300ms"),
        prefix=bed.prefix,
        env=bed.environment,
    )
    service.start()
    wait_until(lambda: len(service.drives()) == bed.count, what="all drives listed")
    return service


@pytest.fixture(scope="module")
def service(bed):
    service = service_in(bed)
    yield service
    service.close()


@pytest.fixture
def drive(service, bed):
    drive = Drive(service, bed, 0)
    yield drive
    bed.set(0, hang=0, fail_errno=0, fail_status=0, power_fixed=0, temperature_k=311)
    wait_until(lambda: drive.now()["state"] == "live", what="the drive answers again")
    service.delete(drive.desired)
    wait_until(lambda: drive.device_state() == 0, what="the drive is back at its default")


@pytest.fixture
def other(service, bed):
    return Drive(service, bed, 1)


# -- what is seen -----------------------------------------------------------------------------------


def test_drives_are_what_the_controllers_say(service, bed):
    for number in range(COUNT):
        d = Drive(service, bed, number).now()
        assert d["kind"] == "nvme" and d["simulated"] is False
        assert d["model"] == "Bed NVMe 25W"
        assert d["pci_address"] == f"0000:0{number + 1}:00.0"
        assert d["namespaces"][0]["path"] == f"/dev/nvme{number}n1"
        assert d["namespaces"][0]["size_bytes"] == 64 << 20
        assert d["namespaces"][0]["in_use"] is False


def test_power_states_are_the_controllers(drive):
    p = drive.power()
    assert [s["max_w"] for s in p["states"]] == [25, 15, 10, 0.045]
    assert [s["operational"] for s in p["states"]] == [True, True, True, False]
    assert p["state"] == 0


def test_temperature_follows_the_drive(drive, bed):
    wait_until(lambda: drive.now()["temperature_c"] == pytest.approx(37.85))
    bed.set(0, temperature_k=351)
    wait_until(lambda: drive.now()["temperature_c"] == pytest.approx(77.85))
    assert drive.service.json(drive.href + "/thermal")["critical_c"] == 80


def test_each_process_has_no_more_rights_than_it_needs(service):
    daemon = service.process.pid
    with open(f"/proc/{daemon}/task/{daemon}/children") as f:
        (helper,) = f.read().split()

    def status(pid, field):
        with open(f"/proc/{pid}/status") as f:
            return next(line.split()[1] for line in f if line.startswith(field))

    assert int(status(daemon, "CapPrm:"), 16) == 0
    assert int(status(helper, "CapEff:"), 16) == 1 << 21  # CAP_SYS_ADMIN: admin commands
    reserve = 1 << 19 | 1 << 2  # CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH: who has a drive open
    assert int(status(helper, "CapPrm:"), 16) == int(status(helper, "CapBnd:"), 16) == 1 << 21 | reserve
    assert status(daemon, "NoNewPrivs:") == status(helper, "NoNewPrivs:") == "1"
    networks = [os.readlink(f"/proc/{pid}/ns/net") for pid in (daemon, helper)]
    assert networks[0] != networks[1]


# -- power ------------------------------------------------------------------------------------------


def test_put_reaches_the_drive(drive, bed):
    r = drive.service.put(drive.desired, {"state": 2})
    assert r.status_code == 201 and r.json()["observed_state"] == 2
    assert drive.device_state() == 2
    assert "Power State   (PS): 2" in bed.run("nvme", "get-feature", "/dev/nvme0", "-f", "2", "-H")


def test_limit_leaves_out_what_is_not_operational(drive):
    r = drive.service.put(drive.desired, {"limit_w": 14})
    assert r.status_code == 201 and r.json()["observed_state"] == 2


def test_what_others_set_is_brought_back(drive, bed):
    drive.service.put(drive.desired, {"state": 1})
    bed.run("nvme", "set-feature", "/dev/nvme0", "-f", "2", "--value=0")
    wait_until(lambda: drive.device_state() == 1, what="the drive is brought back")
    wait_until(lambda: drive.power()["in_sync"])


def test_a_workload_hint_is_no_drift(drive, bed):
    drive.service.put(drive.desired, {"state": 1})
    bed.set(0, power=2 << 5 | 1)
    before = bed.get(0, "commands")
    wait_until(lambda: bed.get(0, "commands") > before + 10, what="it was read back")
    assert drive.power()["in_sync"]
    assert bed.get(0, "power") == 2 << 5 | 1


def test_a_refusal_withdraws_the_claim(drive, bed):
    bed.set(0, power_fixed=1)
    r = drive.service.put(drive.desired, {"state": 1})
    assert r.status_code == 502
    assert "410e" in r.text
    assert drive.power()["claims"] == []
    assert drive.service.get(drive.desired).status_code == 404


def test_a_hung_drive_holds_up_nobody_else(drive, other, bed):
    bed.set(0, hang=1)
    r = drive.service.put(drive.desired, {"state": 2})
    assert r.status_code == 504
    assert drive.now()["state"] == "unresponsive"
    assert drive.power()["claims"]
    r = other.service.put(other.desired, {"state": 1})
    assert r.status_code == 201 and r.json()["observed_state"] == 1
    other.service.delete(other.desired)
    bed.set(0, hang=0)
    wait_until(lambda: drive.power()["state"] == 2, what="the late answer counts")
    wait_until(lambda: drive.now()["state"] == "live")
    assert drive.power()["in_sync"]


def test_a_drive_that_goes_and_comes_gets_its_state_again(drive, bed):
    drive.service.put(drive.desired, {"state": 2})
    bed.unplug(0)
    try:
        wait_until(lambda: drive.now()["state"] == "gone", what="the drive is missed")
        r = drive.service.put(drive.desired, {"state": 1})
        assert r.status_code in (202, 404, 409, 503), r.text
    finally:
        bed.plug(0)
    wait_until(lambda: drive.now()["state"] == "live", what="the drive is seen again")
    wait_until(lambda: drive.device_state() in (1, 2), what="its state is in force again")


def test_no_rights_are_told_as_such(drive, bed):
    bed.set(0, fail_errno=13)
    wait_until(lambda: drive.now()["state"] == "failed")
    assert "CAP_SYS_ADMIN" in drive.now()["state_reason"]


# -- benchmarks -------------------------------------------------------------------------------------


def test_a_drive_that_goes_ends_its_run_and_the_other_keeps_its_figures(service, bed, drive, other):
    body = {"drives": [drive.id, other.id], "workload": "rand-read-4k", "runtime_s": 600, "ramp_s": 0}
    path = service.post("/api/v1/benchmarks", body).headers["Location"]
    wait_until(lambda: service.json(path)["live_read_bytes_per_s"], what="fio reads")
    bed.unplug(0)
    try:
        run = wait_until(lambda: (lambda run: run["ended_at"] and run)(service.json(path)), what="the run is over")
    finally:
        bed.plug(0)
    assert run["state"] == "failed" and run["reason"] == f"drive {drive.id} (serial {drive.serial}) went away"
    gone, kept = run["result"]["drives"]
    assert gone["drive"] == drive.id and gone["gone_at"] and gone["read"]["latency_us"]["p50"] is None
    assert kept["gone_at"] is None and kept["read"]["iops"] > 0 and kept["read"]["latency_us"]["p50"] > 0
    assert run["result"]["window"]["to"] <= gone["gone_at"]
    assert service.get("/metrics").text.count("drivewatt_fio_abandoned 0\n") == 1


def test_reading_needs_no_consent(drive):
    run = drive.run("rand-read-4k", power_state=1)
    assert run["state"] == "completed", run["reason"]
    assert run["result"]["drives"][0]["read"]["iops"] > 0
    assert run["result"]["simulated"] is False


def test_writing_needs_the_serial(drive, other):
    assert "confirm" in drive.refusal("seq-write-128k")
    assert "confirm" in drive.refusal("seq-write-128k", confirm_destructive=[other.serial])


def test_confirmed_writes_are_bounded(drive):
    run = drive.run("rand-write-4k", confirm_destructive=[drive.serial], max_write_bytes=8 << 20)
    assert run["state"] == "completed", run["reason"]
    assert 0 < run["result"]["drives"][0]["write"]["bytes"] <= 8 << 20


@pytest.fixture
def mounted(service, bed):
    """The third drive with a file system that is mounted."""
    drive = Drive(service, bed, 2)
    bed.run("mkfs.ext4", "-q", "/dev/nvme2n1")
    bed.run("mkdir", "-p", "/dev/shm/drivewatt-bed-mount")
    bed.run("mount", "/dev/nvme2n1", "/dev/shm/drivewatt-bed-mount")
    yield drive
    bed.run("umount", "/dev/shm/drivewatt-bed-mount")
    bed.run("rmdir", "/dev/shm/drivewatt-bed-mount")
    bed.run("wipefs", "-qa", "/dev/nvme2n1")
    wait_until(lambda: not drive.now()["in_use"], what="the drive is seen free again")


def test_a_mount_shows_by_itself(mounted):
    mount = "nvme2n1 mounted on /dev/shm/drivewatt-bed-mount"
    uses = lambda: [use["detail"] for n in mounted.now()["namespaces"] for use in n["used_by"]]  # noqa: E731
    wait_until(lambda: mount in uses(), what="the mount is seen")
    assert mounted.now()["in_use"]


def test_a_mounted_drive_is_not_written_to(mounted):
    why = mounted.refusal("seq-write-128k", confirm_destructive=[mounted.serial], override_signature=True)
    assert "mounted on /dev/shm/drivewatt-bed-mount" in why


def test_a_mounted_drive_is_read_with_consent_alone(mounted):
    assert "in use" in mounted.refusal("rand-read-4k")
    run = mounted.run("rand-read-4k", confirm_in_use=[mounted.serial])
    assert run["state"] == "completed", run["reason"]


def test_a_signature_can_be_overridden(service, bed):
    drive = Drive(service, bed, 2)
    bed.run("mkfs.ext4", "-q", "/dev/nvme2n1")
    consent = {"confirm_destructive": [drive.serial], "max_write_bytes": 8 << 20}
    assert "ext4 signature" in drive.refusal("seq-write-128k", **consent)
    run = drive.run("seq-write-128k", override_signature=True, **consent)
    assert run["state"] == "completed", run["reason"]


# -- what others do with a drive -------------------------------------------------------------------


def consent(drive):
    return {"confirm_destructive": [drive.serial], "max_write_bytes": 1 << 20, "override_signature": True}


@pytest.fixture
def third(service, bed):
    """Free before and after."""
    drive = Drive(service, bed, 2)
    bed.run("wipefs", "-qa", "/dev/nvme2n1")
    wait_until(lambda: not drive.now()["in_use"], what="the drive is free")
    yield drive
    wait_until(lambda: not drive.now()["in_use"], what="the drive is seen free again")
    assert drive.run("seq-write-128k", **consent(drive))["state"] == "completed"


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_RDWR, os.O_RDONLY | os.O_EXCL])
def test_a_drive_that_a_process_has_open_is_not_touched(third, bed, flags):
    with bed.held("/dev/nvme2n1", flags) as pid:
        told = f"(process {pid}) has nvme2n1 open"
        assert told in third.refusal("seq-write-128k", **consent(third))
        uses = lambda: [(use["kind"], use["detail"]) for use in third.now()["namespaces"][0]["used_by"]]  # noqa: E731
        wait_until(lambda: any(kind == "process" and told in detail for kind, detail in uses()), what="it is shown")
        assert third.now()["in_use"]
        why = third.refusal("rand-read-4k")
        assert told in why and "not confirmed for reads while it is in use" in why
        run = third.run("rand-read-4k", confirm_in_use=[third.serial])
        assert run["state"] == "completed", run["reason"]


def test_a_drive_under_another_name_is_not_touched(third, bed):
    """A node of the same device in another place."""
    bed.run("cp", "-a", "/dev/nvme2n1", "/dev/shm/drivewatt-node")
    try:
        with bed.held("/dev/shm/drivewatt-node", os.O_RDWR) as pid:
            assert f"(process {pid}) has nvme2n1 open" in third.refusal("seq-write-128k", **consent(third))
    finally:
        bed.run("rm", "/dev/shm/drivewatt-node")


def test_a_mount_that_no_table_shows_is_found(third, bed, tmp_path):
    """In a mount namespace of somebody else's: the exclusive open finds it."""
    bed.run("mkfs.ext4", "-q", "/dev/nvme2n1")
    with bed.mounted_elsewhere("/dev/nvme2n1", str(tmp_path)):
        assert "exclusive open" in third.refusal("seq-write-128k", **consent(third))
    bed.run("wipefs", "-qa", "/dev/nvme2n1")


def test_a_mount_of_the_machine_is_found_from_a_namespace_of_ones_own(tmp_path):
    """The daemon is in the bed's mount namespace, the mount is outside. A namespace that somebody makes
    meanwhile keeps a copy of the mount: so it is a drive that nobody needs afterwards."""
    with contextlib.closing(Bed(1)) as bed, contextlib.closing(service_in(bed)) as service:
        drive = Drive(service, bed, 0)
        bed.run("mkfs.ext4", "-q", "/dev/nvme0n1")
        subprocess.run(["mount", "/dev/" + bed.loop(0), tmp_path], check=True)
        try:
            with open("/proc/1/mountinfo") as f:
                init_has_it = f" {tmp_path} " in f.read()
            told = f"nvme0n1 mounted on {tmp_path}" if init_has_it else "exclusive open"
            assert told in drive.refusal("seq-write-128k", **consent(drive))
        finally:
            subprocess.run(["umount", tmp_path], check=True)


def test_a_drive_that_is_exported_is_not_touched(third, bed):
    """configfs as it looks with nvmet."""
    bed.run("mount", "-t", "tmpfs", "tmpfs", "/sys/kernel")
    namespace = "/sys/kernel/config/nvmet/subsystems/nqn.one/namespaces/1"
    try:
        bed.run("mkdir", "-p", namespace)
        bed.run("sh", "-c", f"echo /dev/nvme2n1 >{namespace}/device_path")
        assert "nvmet exports nvme2n1" in third.refusal("seq-write-128k", **consent(third))
        wait_until(lambda: third.now()["in_use"], what="it is shown")
    finally:
        bed.run("umount", "/sys/kernel")


def test_a_drive_that_a_loop_device_is_made_of_is_not_touched(third, bed):
    loop = bed.run("losetup", "-f", "--show", "/dev/nvme2n1").strip()
    try:
        why = third.refusal("seq-write-128k", **consent(third))
        assert f"{os.path.basename(loop)} is made of nvme2n1" in why
    finally:
        bed.run("losetup", "-d", loop)


def test_a_run_locks_its_drive(third, bed):
    """So that udev lets it alone."""
    body = {"drives": [third.id], "workload": "rand-read-4k", "runtime_s": 600}
    run = third.service.post("/api/v1/benchmarks", body).headers["Location"]
    wait_until(lambda: third.service.json(run)["state"] == "running", what="the run is running")
    assert "locked" in bed.run("sh", "-c", "flock --nonblock /dev/nvme2n1 true || echo locked")
    assert third.service.post(run + "/cancel").status_code == 202
    wait_until(lambda: third.service.json(run)["ended_at"], what="the run is over")
    assert "locked" not in bed.run("sh", "-c", "flock --nonblock /dev/nvme2n1 true || echo locked")


def test_a_namespace_that_others_may_attach_is_not_written_to(third, bed):
    bed.set(2, nmic=1)
    try:
        assert "other controllers" in third.refusal("seq-write-128k", **consent(third))
        assert third.run("rand-read-4k")["state"] == "completed"
    finally:
        bed.set(2, nmic=0)


@pytest.mark.parametrize(
    "fields, told",
    [
        ({"registrants": 1}, "1 registered for reservations, held: none"),
        ({"registrants": 2, "reservation": 2, "long_host_ids": 1}, "2 registered for reservations, held: exclusive access"),
    ],
)
def test_a_namespace_that_others_have_reserved_is_not_touched(third, bed, fields, told):
    bed.set(2, reservable=1, **fields)
    try:
        assert told in third.refusal("seq-write-128k", **consent(third))
        assert told in wait_until(lambda: third.refusal("rand-read-4k"))
        assert third.run("rand-read-4k", confirm_in_use=[third.serial])["state"] == "completed"
    finally:
        bed.set(2, reservable=0, registrants=0, reservation=0, long_host_ids=0)


def test_a_drive_that_knows_reservations_and_has_none_is_free(third, bed):
    bed.set(2, reservable=1)
    try:
        assert third.run("seq-write-128k", **consent(third))["state"] == "completed"
    finally:
        bed.set(2, reservable=0)


def test_without_the_right_to_look_nothing_is_written(start, bed):
    """Who has a drive open cannot be told then; reading needs no such thing."""
    kept = "-all,+sys_admin,+setuid,+setgid,+setpcap,+chown"
    service = start(
        *("--allow-destructive", "--settle", "50ms"),
        prefix=[*bed.prefix, "setpriv", "--bounding-set", kept, "--"],
        env=bed.environment,
    )
    wait_until(lambda: len(service.drives()) == COUNT, what="all drives listed")
    drive = Drive(service, bed, 1)
    assert "could not be looked into" in drive.refusal("seq-write-128k", **consent(drive))
    assert drive.run("rand-read-4k")["state"] == "completed"
    kinds = {use["kind"] for use in drive.now()["namespaces"][0]["used_by"]}
    assert kinds == {"unseen"} and drive.now()["in_use"]
