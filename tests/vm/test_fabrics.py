"""Drives on the network: power states that count, hung and vanished drives, resets. The kernel's
nvme-tcp connects to nvme_tcp.py."""

import pytest
from guest import Drive, wait_until
from nvme_tcp import STATES, Target

HOST = "10.0.2.2"  # this host, as the machine sees it


class Remote(Drive):
    """A connected target as the daemon shows it."""

    def __init__(self, service, target):
        self.target = target
        self.connect(service.machine)

        def found():
            return [d["id"] for d in service.drives() if d["serial"] == target.serial and d["state"] == "live"]

        super().__init__(service, wait_until(found, what=f"{target.serial} is listed")[0])
        self.wait_identified()

    def connect(self, machine):
        where = f"transport=tcp,traddr={HOST},trsvcid={self.target.port},nqn={self.target.nqn}"
        machine.run(f"echo {where},nr_io_queues=2,reconnect_delay=1,ctrl_loss_tmo=600 >/dev/nvme-fabrics")

    def disconnect(self):
        self.machine.run(f"echo 1 >/sys/class/nvme/{self.name}/delete_controller")

    def wait_in_force(self, state):
        wait_until(lambda: self.target.power_state == state, what=f"power state {state} is set")
        wait_until(lambda: self.power()["state"] == state and self.power()["in_sync"], what="it is read back")


@pytest.fixture(scope="module")
def remote(service):
    remote = Remote(service, Target("VM-REMOTE"))
    yield remote
    remote.disconnect()
    remote.wait_state("gone")
    remote.target.vanish()


@pytest.fixture
def drive(remote):
    yield remote
    remote.wait_state("live")
    remote.service.delete(remote.desired)
    remote.wait_in_force(0)


def test_it_is_a_drive_like_others(drive):
    d = drive.now()
    assert d["transport"] == "tcp" and d["pci_address"] is None
    assert d["address"].startswith(f"traddr={HOST},trsvcid={drive.target.port}")
    assert d["model"] == "TCP 25W" and d["subsystem_nqn"] == drive.target.nqn
    wait_until(lambda: drive.now()["temperature_c"] == pytest.approx(37.85), what="its temperature is read")
    assert [s["max_w"] for s in drive.power()["states"]] == [watts for watts, _ in STATES]


def test_put_reaches_the_drive(drive):
    r = drive.service.put(drive.desired, {"state": 2})
    assert r.status_code == 201 and r.json()["observed_state"] == 2
    assert drive.target.power_state == 2
    # Another program reads the same.
    assert int(drive.machine.run(f"nvme get-feature /dev/{drive.name} -f 2").rpartition(":")[2], 16) == 2
    assert drive.service.put(drive.desired, {"limit_w": 15}).json()["observed_state"] == 1
    assert drive.target.power_state == 1


def test_what_others_set_is_brought_back(drive):
    drive.service.put(drive.desired, {"state": 1})
    drive.machine.run(f"nvme set-feature /dev/{drive.name} -f 2 --value=0")
    drive.wait_in_force(1)


def test_power_states_change_the_throughput(drive, light):
    def rate(state):
        run = drive.service.run(drives=[drive.id], workload=light("randread"), runtime_s=3, power_state=state)
        assert run["state"] == "completed", run["reason"]
        return run["result"]["total"]["read"]["bytes_per_s"]

    slow, fast = rate(2), rate(0)
    assert slow < 1.2 * STATES[2][1]
    assert fast > 1.5 * slow
    assert drive.power()["claims"] == []


def test_a_reset_loses_the_state_and_it_is_set_again(drive):
    drive.service.put(drive.desired, {"state": 1})
    before = drive.target.controller
    drive.machine.run(f"echo 1 >/sys/class/nvme/{drive.name}/reset_controller")
    assert drive.target.controller is not before
    drive.wait_in_force(1)


def test_a_warning_and_heat_are_seen(drive):
    drive.target.temperature_k, drive.target.critical_warning = 351, 1 << 1
    try:
        wait_until(lambda: drive.now()["temperature_c"] == pytest.approx(77.85), what="the heat is seen")
        assert drive.now()["health"] == "critical"
    finally:
        drive.target.temperature_k, drive.target.critical_warning = 311, 0
    wait_until(lambda: drive.now()["health"] == "ok", what="it is over")


def test_a_hung_drive_costs_its_own_answer_and_nothing_else(drive, find):
    other = find("steady")
    with drive.target.hung():
        assert drive.service.put(drive.desired, {"state": 1}).status_code == 504
        assert drive.now()["state"] == "unresponsive"
        assert drive.power()["claims"]
        r = other.service.put(other.desired, {"state": 0})
        assert r.status_code == 201 and r.json()["observed_state"] == 0
        assert other.service.delete(other.desired).status_code == 204
        assert drive.target.power_state == 0
    drive.wait_in_force(1)
    drive.wait_state("live")


def abandoned(service):
    """How many processes of fio wait in the kernel although their runs are over."""
    return service.get("/metrics").text.split("\ndrivewatt_fio_abandoned ")[1].split()[0]


def test_a_fio_that_cannot_be_killed_is_left_behind_until_its_drive_answers(drive, light):
    service = drive.service
    body = {"drives": [drive.id], "workload": light("randread"), "runtime_s": 600}
    path = service.post("/api/v1/benchmarks", body).headers["Location"]
    wait_until(lambda: service.json(path)["live_read_bytes_per_s"], what="fio reads")
    drive.target.vanish()
    try:
        drive.wait_state("resetting")
        assert service.post(path + "/cancel").status_code == 202
        wait_until(lambda: service.json(path)["ended_at"], what="the run is over")
        assert service.json(path)["state"] == "cancelled"
        assert abandoned(service) == "1"
    finally:
        drive.target.appear()
    wait_until(lambda: abandoned(service) == "0", what="fio is gone")
    drive.wait_state("live")
    assert service.run(drives=[drive.id], workload=light("randread"), runtime_s=1)["state"] == "completed"


@pytest.fixture
def reserve(drive):
    """Registers this host with the drive, and reserves it."""
    drive.machine.run(f"nvme resv-register {drive.block} -r 0 --nrkey=7")

    def reserve(kind):
        drive.machine.run(f"nvme resv-acquire {drive.block} -a 0 -t {kind} --crkey=7")

    yield reserve
    drive.machine.run(f"nvme resv-register {drive.block} -r 1 --crkey=7")
    wait_until(lambda: drive.uses() == [], what="the drive is seen free again")


def test_what_is_reserved_is_left_alone(drive, light, reserve):
    body = {"drives": [drive.id], "workload": light("write"), "confirm_destructive": [drive.serial], "runtime_s": 1}
    for told in ("1 registered for reservations, held: none", "1 registered for reservations, held: exclusive access"):
        wait_until(lambda: told in drive.uses(), what=told)  # noqa: B023
        for workload in ("write", "randread"):
            r = drive.service.post("/api/v1/benchmarks", {**body, "workload": light(workload)})
            assert r.status_code in (403, 409) and told in r.text, r.text
        reserve(2)


def states_told(drive):
    """What the events say that it has become, one after another."""
    r = drive.service.get("/api/v1/events?limit=1000", headers={"Accept": "application/json"})
    changes = [e["data"] for e in r.json()["items"] if e["type"] == "drive.state_changed" and e["object"] == drive.href]
    return [change["to"] for change in changes]


def test_a_drive_that_vanishes_is_awaited_and_set_again(drive, find):
    other = find("steady")
    drive.service.put(drive.desired, {"state": 2})
    number = drive.target.controller.number
    before = len(states_told(drive))
    drive.target.vanish()
    try:
        drive.wait_state("resetting")
        assert drive.service.put(drive.desired, {"state": 1}).status_code in (503, 504)
        for _ in range(3):  # other drives are asked several times meanwhile
            seen = other.now()["seen_at"]
            wait_until(lambda: other.now()["seen_at"] != seen, what="the other drive answers")  # noqa: B023
        assert states_told(drive)[before:] == ["resetting"]
    finally:
        drive.target.appear()
    drive.wait_state("live")
    drive.wait_in_force(1)
    # Under another controller id it is the same drive.
    assert drive.target.controller.number != number
    assert drive.now()["id"] == drive.id


def test_a_drive_that_was_given_up_comes_back_by_a_new_connection(drive):
    drive.service.put(drive.desired, {"state": 1})
    drive.disconnect()
    drive.wait_state("gone")
    drive.connect(drive.machine)
    drive.wait_state("live")
    drive.wait_in_force(1)
