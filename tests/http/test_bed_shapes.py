"""Drives of less usual shapes, and namespaces that change, on the whole daemon."""

import pytest
from bed import Bed, Drive
from service import Service, wait_until

LOOP_BYTES = 64 << 20
FABRICS_ADDRESS = (
    "traddr=fd00:1234:5678:9abc:def0:1234:5678:9abc,trsvcid=4420,"
    "host_traddr=fd00:1234:5678:9abc:def0:1234:5678:0001,host_iface=enp65s0f0np0,"
    "src_addr=fd00:1234:5678:9abc:def0:1234:5678:0001"
)


@pytest.fixture(scope="module")
def bed():
    """nvme0 and nvme1 as usual; nvme2 and nvme3 are two controllers of one subsystem."""
    bed = Bed(4)
    bed.twin(3, 2)
    yield bed
    bed.close()


@pytest.fixture(scope="module")
def service(bed):
    service = Service(
        *("--allow-destructive", "--settle", "0s"),
        *("--rescan", "200ms", "--reconcile", "200ms", "--health", "200ms"),
        prefix=bed.prefix,
        env=bed.environment,
    )
    service.start()
    wait_until(lambda: len(service.drives()) == bed.count, what="all drives listed")
    yield service
    service.close()


@pytest.fixture
def drive(service, bed):
    return Drive(service, bed, 0)


@pytest.fixture
def pair(service):
    """By controller id."""
    drives = [d for d in service.drives() if d["serial"] == "BED0002"]
    drives = [wait_until(lambda: (lambda n: n if n["subsystem_nqn"] else None)(service.json(d["href"]))) for d in drives]
    return sorted(drives, key=lambda d: d["controller_id"])


def test_controllers_of_one_subsystem_are_drives_of_one_device(service, bed, pair):
    first, second = pair
    assert first["id"] != second["id"] and first["controller_id"] != second["controller_id"]
    assert first["subsystem_nqn"] == second["subsystem_nqn"]
    for d in pair:
        (namespace,) = d["namespaces"]
        assert namespace["path"] == "/dev/nvme2n1" and namespace["size_bytes"] == LOOP_BYTES
        assert [use["kind"] for use in namespace["used_by"]] == ["shared"]
        # One serial of one device.
        assert d["serial_unique"] is True
    # The power state is each controller's own.
    assert service.put(second["href"] + "/power/desired", {"state": 2}).status_code == 201
    assert (bed.get(2, "power"), bed.get(3, "power")) == (0, 2)
    assert service.json(first["href"] + "/power")["state"] == 0
    assert service.delete(second["href"] + "/power/desired").status_code == 204


def test_a_namespace_that_two_controllers_reach_is_not_written_to(service, pair):
    for d in pair:
        consent = {"confirm_destructive": [d["serial"]], "override_signature": True}
        r = service.post(
            "/api/v1/benchmarks", {"drives": [d["id"]], "workload": "seq-write-128k", "runtime_s": 1, **consent}
        )
        assert r.status_code == 409 and "2 controllers reach it" in r.text


def test_a_discovery_controller_is_no_drive(service, bed):
    drive = Drive(service, bed, 1)
    bed.attribute(1, "cntrltype", "discovery")
    try:
        wait_until(lambda: drive.now()["state"] == "gone", what="it is no drive any more")
    finally:
        bed.attribute(1, "cntrltype", "io")
    wait_until(lambda: drive.now()["state"] == "live", what="it is one again")


def test_an_address_on_the_network_is_shown_whole(drive, bed):
    bed.attribute(0, "transport", "tcp")
    bed.attribute(0, "address", FABRICS_ADDRESS)
    try:
        wait_until(lambda: drive.now()["transport"] == "tcp", what="the transport is seen")
        wait_until(lambda: drive.now()["address"] == FABRICS_ADDRESS, what="the address is seen")
        assert drive.now()["pci_address"] is None
    finally:
        bed.attribute(0, "transport", "pcie")
        bed.attribute(0, "address", "0000:01:00.0")
    wait_until(lambda: drive.now()["pci_address"] == "0000:01:00.0", what="it is at its old place")


def nsids(drive):
    return [n["nsid"] for n in drive.now()["namespaces"]]


def test_namespaces_come_and_go(drive, bed):
    loop = bed.loop(0)
    bed.add_namespace(0, 2, bed.loop(1))
    wait_until(lambda: nsids(drive) == [1, 2], what="the new namespace is seen")
    wait_until(lambda: drive.now()["capacity_bytes"] == 2 * LOOP_BYTES, what="so is its capacity")
    bed.remove_namespace(0, 2)
    wait_until(lambda: nsids(drive) == [1], what="it is missed")
    bed.remove_namespace(0, 1)
    wait_until(lambda: nsids(drive) == [] and drive.now()["capacity_bytes"] == 0, what="there is none")
    # A controller without namespaces is a drive all the same.
    assert drive.now()["state"] == "live"
    assert drive.service.put(drive.desired, {"state": 1}).json()["observed_state"] == 1
    assert drive.service.delete(drive.desired).status_code == 204
    r = drive.service.post("/api/v1/benchmarks", {"drives": [drive.id], "workload": "rand-read-4k", "runtime_s": 1})
    assert r.status_code in (400, 409), r.text
    bed.add_namespace(0, 1, loop)
    wait_until(lambda: nsids(drive) == [1] and drive.now()["capacity_bytes"] == LOOP_BYTES, what="it is back")


def test_a_format_shows_its_block_size(drive, bed):
    loop = "/dev/" + bed.loop(0)
    assert drive.now()["namespaces"][0]["lba_bytes"] == 512
    bed.run("losetup", "--sector-size", "4096", loop)
    try:
        wait_until(lambda: drive.now()["namespaces"][0]["lba_bytes"] == 4096, what="the new block size is seen")
        assert drive.now()["capacity_bytes"] == LOOP_BYTES
    finally:
        bed.run("losetup", "--sector-size", "512", loop)
    wait_until(lambda: drive.now()["namespaces"][0]["lba_bytes"] == 512, what="the old one is back")


# -- a limit in watts -------------------------------------------------------------------------------


@pytest.fixture
def able(service, bed):
    """Drive 1, which afterwards is as before."""
    yield Drive(service, bed, 1)
    service.delete(Drive(service, bed, 1).desired)
    bed.set(1, has_limit=0, limit_forbids=0, has_ocp=0, limit=0, ocp_watts=0)
    wait_until(lambda: Drive(service, bed, 1).power()["limit_by"] == "power_state", what="it is as before")


def offer(drive, means, **fields):
    drive.bed.set(drive.number, **fields)
    wait_until(lambda: drive.power()["limit_by"] == means, what=f"{means} is seen")


def test_a_limit_is_kept_by_state_where_there_is_nothing_better(able):
    r = able.service.put(able.desired, {"limit_w": 14.004})
    assert r.status_code == 201 and r.json()["observed_state"] == 2
    assert r.json()["limit_w"] == 14.004 and r.json()["limit_in_force_w"] == 10
    assert r.json()["observed_limit_w"] is None and r.json()["limit_by"] == "power_state"


def test_a_limit_is_kept_by_ocps_power_state(able, bed):
    offer(able, "ocp_power_state", has_ocp=1)
    r = able.service.put(able.desired, {"limit_w": 14.004})
    assert r.status_code == 201 and r.json()["observed_state"] == 2
    assert r.json()["limit_w"] == 14.004 and r.json()["in_sync"]
    assert r.json()["limit_in_force_w"] == r.json()["observed_limit_w"] == bed.get(1, "ocp_watts") == 12
    assert able.service.json(able.desired) == {**r.json(), "held_by": "admin"}
    assert able.service.delete(able.desired).status_code == 204
    assert able.device_state() == 0


def test_a_limit_is_kept_by_the_drives_power_limit(able, bed):
    offer(able, "power_limit", has_ocp=1, has_limit=1)
    r = able.service.put(able.desired, {"limit_w": 14.004})
    assert r.status_code == 201 and r.json()["observed_state"] == 0
    assert r.json()["limit_in_force_w"] == r.json()["observed_limit_w"] == 14 and r.json()["in_sync"]
    assert bed.get(1, "limit") == 1400 | 2 << 16
    p = able.power()
    assert p["limit_w"] == p["observed_limit_w"] == 14 and p["limit_by"] == "power_limit"
    # As after a reset.
    bed.set(1, limit=0)
    wait_until(lambda: bed.get(1, "limit") == 1400 | 2 << 16, what="the limit is set again")
    assert able.service.put(able.desired, {"state": 1}).json()["observed_limit_w"] is None
    assert bed.get(1, "limit") == 0 and able.device_state() == 1


def test_a_limit_that_forbids_states_is_kept_in_one_that_fits(able, bed):
    offer(able, "power_limit", has_limit=1, limit_forbids=1)
    r = able.service.put(able.desired, {"limit_w": 20})
    assert r.status_code == 201 and r.json()["observed_state"] == 1
    assert r.json()["observed_limit_w"] == 20 and r.json()["in_sync"]
    r = able.service.put(able.desired, {"limit_w": 9})
    assert r.status_code == 400 and r.json()["errors"][0]["pointer"] == "/limit_w"


# -- logs, and sleep --------------------------------------------------------------------------------


def health(drive):
    return drive.service.json(drive.href + "/health")


def test_a_drive_without_further_logs_says_why(drive):
    wait_until(lambda: drive.service.get(drive.href + "/health").status_code == 200, what="its health is read")
    h = health(drive)
    assert h["ocp"] is None and "OCP" in h["ocp_reason"]
    assert h["power_measurement"] is None and h["power_measurement_reason"]
    assert h["lifetime_energy_wh"] is None and h["age_reason"] is None and h["age_s"] >= 0
    assert drive.power()["measured_w"] is None and drive.power()["measured_reason"]


def test_what_a_drive_measures_is_shown_and_becomes_samples(able, bed):
    bed.set(1, has_ocp=1, measures=1, average=1234 | 2 << 16, energy_wh=42)
    wait_until(lambda: health(able)["ocp"] and able.power()["measured_w"], what="its logs are read")
    h = health(able)
    assert h["ocp"]["throttling_events"] == 7 and h["ocp"]["media_written_bytes"] == 2000 * 512000
    assert h["power_measurement"]["average_w"] == 12.34 and h["power_measurement"]["error_pct"] is None
    assert h["ocp_reason"] is None and h["lifetime_energy_wh"] == 42
    assert able.power()["measured_w"] == 12.34 and able.power()["measured_source"] == "measured"
    wanted = {("power", "W"), ("energy_counter", "kWh")}
    series = lambda: able.service.json("/api/v1/series?limit=1000")["items"]  # noqa: E731
    wait_until(
        lambda: wanted <= {(s["quantity"], s["unit"]) for s in series() if s["object"] == able.id},
        what="there are series of both",
    )
    bed.set(1, average=0)
    wait_until(lambda: able.power()["measured_w"] is None, what="what is not measured is not shown")
    bed.set(1, measures=0, energy_wh=0)


def test_a_drive_that_sleeps_is_let_sleep(drive, bed):
    def count(name):
        (line,) = [x for x in drive.service.get("/metrics").text.splitlines() if x.startswith(name + " ")]
        return int(line.split()[1])

    bed.set(0, power=3)
    wait_until(lambda: drive.power()["state"] == 3, what="its sleep is seen")
    left_out = count("drivewatt_drive_asleep_total")
    wait_until(lambda: count("drivewatt_drive_asleep_total") >= left_out + 4, what="readings are left out")
    read_at = health(drive)["read_at"]
    bed.set(0, temperature_k=340)
    wait_until(lambda: count("drivewatt_drive_asleep_total") >= left_out + 8, what="more are left out")
    h = health(drive)
    assert h["read_at"] == read_at and "non-operational" in h["age_reason"]
    wakes = count("drivewatt_drive_wakes_total")
    assert drive.service.put(drive.desired, {"state": 0}).status_code == 201
    assert count("drivewatt_drive_wakes_total") > wakes
    wait_until(lambda: health(drive)["temperature_c"] == pytest.approx(66.85), what="it is read again")
    assert health(drive)["age_reason"] is None
    assert drive.service.delete(drive.desired).status_code == 204
    bed.set(0, temperature_k=311)


def test_a_look_that_hangs_holds_up_no_change_of_power(drive, bed):
    bed.set(0, hang_look=1)
    try:
        before = bed.get(0, "commands")
        # Nothing is answered now but what concerns power.
        wait_until(lambda: bed.get(0, "commands") > before + 3, what="its power state is read all the same")
        r = drive.service.put(drive.desired, {"state": 1})
        assert r.status_code == 201 and r.json()["observed_state"] == 1
        assert drive.service.delete(drive.desired).status_code == 204
    finally:
        bed.set(0, hang_look=0)
    wait_until(lambda: drive.now()["state"] == "live", what="it answers as before")
