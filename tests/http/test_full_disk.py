"""What goes on, what is kept and what is told when the disk is full."""

import os

import disk
import pytest
from service import problem, wait_until

API = "/api/v1"


@pytest.fixture
def service(tmp_path):
    service = disk.small_service(tmp_path, "--simulate", "2", "--settle", "50ms").start()
    yield service
    service.close()


def begin(service, drive, **body):
    body = {"drives": [drive], "workload": "rand-read-4k", "power_state": 1, "runtime_s": 3, **body}
    r = service.post(f"{API}/benchmarks", body)
    assert r.status_code == 202, r.text
    return r.headers["Location"]


def metric(service, name):
    lines = service.get("/metrics").text.splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(name + " ")))


def over(service, path):
    run = service.json(path)
    return run if run["ended_at"] else None


def test_a_run_that_ends_on_a_full_disk_is_kept(service):
    drive, other = (d["id"] for d in service.drives())
    path = begin(service, drive)
    wait_until(lambda: service.json(path)["state"] == "running", 60)
    filler = disk.fill(service)

    run = wait_until(lambda: over(service, path), 60, "the end of the run")
    assert (run["state"], run["recorded"]) == ("completed", False), run
    assert run["result"]["total"]["read"]["ios"] > 0
    series, fio = service.json(path + "/series"), service.json(path + "/fio")
    assert run["recorded"] is False and "ETag" not in service.get(path).headers
    (listed,) = service.json(f"{API}/benchmarks")["items"]
    assert listed["recorded"] is False and listed["state"] == "completed"
    wait_until(lambda: service.json(f"{API}/drives/{drive}/power")["state"] == 0, 30, "the lease's end")
    problem(service.post(path + "/cancel"), 409)
    problem(service.delete(path), 507)
    assert metric(service, "drivewatt_benchmarks_unrecorded") == 1
    assert metric(service, "drivewatt_benchmarks_running") == 0

    os.unlink(filler)
    wait_until(lambda: service.json(path)["recorded"], 60, "the stored end")
    wait_until(lambda: metric(service, "drivewatt_benchmarks_unrecorded") == 0)
    assert service.json(path) == {**run, "recorded": True}
    again = begin(service, other, runtime_s=1)
    assert wait_until(lambda: over(service, again), 60)["state"] == "completed"
    assert (service.json(path + "/series"), service.json(path + "/fio")) == (series, fio)


def test_readiness_tells_of_a_full_disk(service):
    assert service.json("/readyz")["status"] == "ready"
    assert metric(service, "drivewatt_data_free_bytes") > 0
    filler = disk.fill(service)
    ready = service.json("/readyz")
    assert (ready["status"], ready["control_store"]) == ("degraded", "full")
    assert metric(service, "drivewatt_db_control_healthy") == 0
    assert metric(service, "drivewatt_data_free_bytes") < 65536
    os.unlink(filler)
    # Without a change of anybody's: the daemon looks by itself.
    wait_until(lambda: service.json("/readyz")["status"] == "ready", 180, "readiness")
