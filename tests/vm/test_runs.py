"""Benchmarks: fio through the helper on namespaces that the kernel's driver serves."""

import pytest
from guest import wait_until


def test_reading(service, find, light, machine):
    drive = find("steady")
    before = service.json(drive.href + "/health")
    run = service.run(drives=[drive.id], workload=light("randread"), runtime_s=3, power_state=0)
    assert run["state"] == "completed", run["reason"]
    result = run["result"]
    (row,) = result["drives"]
    assert row["read"]["iops"] > 0 and row["read"]["latency_us"]["p99"] > 0
    assert row["read"]["bytes_per_s"] == pytest.approx(65536 * row["read"]["iops"], rel=0.01)
    assert result["total"]["write"]["bytes"] == 0 and result["simulated"] is False
    assert result["fio"]["exit_code"] == 0
    # There is no meter; that is told, and never 0 W.
    power = result["power"]
    for figure in ("system_w", "above_baseline_w", "per_drive_w", "drive_w"):
        assert power[figure] is None and power["reasons"][figure]
    environment = result["environment"]
    assert environment["kernel"] == "Linux " + machine.run("uname -r").strip()
    assert environment["drives"][0]["address"] == drive.now()["pci_address"]
    # The drive itself has counted what was read.
    after = service.json(drive.href + "/health")
    assert after["read_bytes"] - before["read_bytes"] >= row["read"]["bytes"] - 512000


def test_writing_needs_consent_and_stays_in_its_bounds(service, find, light):
    drive = find("steady")
    body = {"drives": [drive.id], "workload": light("write"), "runtime_s": 1}
    assert service.post("/api/v1/benchmarks", body).status_code in (400, 403)
    before = service.json(drive.href + "/health")["written_bytes"]
    run = service.run(**body, confirm_destructive=[drive.serial], max_write_bytes=1 << 20)
    assert run["state"] == "completed", run["reason"]
    jobs = service.json(run["href"] + "/fio")["jobs"]
    assert 0 < sum(job["write"]["io_bytes"] for job in jobs) <= 1 << 20
    wait_until(lambda: service.json(drive.href + "/health")["written_bytes"] > before, what="the drive has counted it")
    assert drive.machine.run(f"dd if={drive.block} bs=64k count=1 2>/dev/null | tr -d '\\0' | wc -c").strip() != "0"


def test_drives_of_different_blocks_run_together(service, find, light):
    two = [find("steady"), find("large")]
    run = service.run(drives=[drive.id for drive in two], workload=light("randread"), runtime_s=2)
    assert run["state"] == "completed", run["reason"]
    assert [row["read"]["iops"] > 0 for row in run["result"]["drives"]] == [True, True]


@pytest.mark.parametrize("name", ["pair", "zoned"])
def test_what_is_shared_or_has_zones_is_never_written(service, find, light, name):
    drive = find(name)
    body = {"drives": [drive.id], "workload": light("write"), "confirm_destructive": [drive.serial]}
    r = service.post("/api/v1/benchmarks", {**body, "override_signature": True})
    assert r.status_code in (400, 403, 409), r.text


def test_without_a_namespace_nothing_runs(service, find, light):
    r = service.post("/api/v1/benchmarks", {"drives": [find("empty").id], "workload": light("read")})
    assert r.status_code == 400 and "no namespace" in r.text
