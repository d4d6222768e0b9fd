"""Benchmark runs on simulated drives: the real fio, measured in simulated watts."""

import pytest
from service import wait_until


@pytest.fixture(scope="module")
def completed(simulated):
    """One short run that many tests look at."""
    run = simulated.run(
        drives=[d["id"] for d in simulated.drives()[:2]],
        workload="seq-read-128k",
        power_state=1,
        runtime_s=6,
        ramp_s=1,
        labels={"test": "yes"},
    )
    assert run["state"] == "completed", run["reason"]
    return run


def test_result_has_throughput_per_drive_and_in_total(completed):
    total = completed["result"]["total"]["read"]
    drives = completed["result"]["drives"]
    assert len(drives) == 2
    assert total["bytes_per_s"] == pytest.approx(sum(d["read"]["bytes_per_s"] for d in drives), rel=0.02)
    assert total["iops"] == pytest.approx(total["bytes_per_s"] / 131072, rel=1e-6)
    shared_s = completed["result"]["window"]["shared_s"]
    assert total["bytes"] == pytest.approx(total["bytes_per_s"] * shared_s, abs=2)
    assert total["ios"] == pytest.approx(total["iops"] * shared_s, abs=2)
    latency = total["latency_us"]
    assert 0 < latency["p50"] <= latency["p95"] <= latency["p99"] <= latency["p99_9"] <= latency["max"]
    assert completed["result"]["total"]["write"]["bytes"] == 0


def test_result_has_watts_with_their_uncertainty(completed):
    power = completed["result"]["power"]
    assert power["system_w"]["samples"] >= 8
    assert power["baseline"]["source"] in ("simulated", "measured")
    assert power["above_baseline_w"] == pytest.approx(power["system_w"]["mean"] - power["baseline"]["w"])
    assert power["uncertainty_w"] is None or power["uncertainty_w"] > 0
    assert completed["result"]["efficiency"]["system"]["iops_per_w"] > 0
    assert completed["result"]["simulated"] is True


def test_what_is_null_has_its_reason_and_nothing_else_has(completed):
    power = completed["result"]["power"]
    figures = ("system_w", "baseline", "above_baseline_w", "per_drive_w", "uncertainty_w", "bound_w", "resolution_w")
    for name in (*figures, "drive_w"):
        assert (power[name] is None) == (name in power["reasons"]), name
    for scope in completed["result"]["efficiency"].values():
        assert (scope["iops_per_w"] is None) == ("reason" in scope)


def test_run_is_listed_and_has_documents(simulated, completed):
    assert completed["id"] in [r["id"] for r in simulated.json("/api/v1/benchmarks")["items"]]
    assert simulated.json("/api/v1/benchmarks?state=completed")["items"]
    assert simulated.json(completed["href"] + "/fio")["jobs"]
    assert simulated.json(completed["href"] + "/series")
    assert completed["labels"] == {"test": "yes"}


def test_drives_are_back_at_their_own_state(simulated, completed):
    for drive in completed["drives"]:
        wait_until(lambda d=drive: simulated.json(f"/api/v1/drives/{d}/power")["state"] == 0)
        assert simulated.json(f"/api/v1/drives/{drive}/power")["claims"] == []


def test_lease_is_seen_while_it_runs_and_cancel_ends_it(simulated):
    drive = simulated.drives()[0]["id"]
    r = simulated.post(
        "/api/v1/benchmarks",
        {"drives": [drive], "workload": "rand-read-4k", "power_state": 2, "runtime_s": 600},
    )
    path = r.headers["Location"]
    wait_until(lambda: simulated.json(path)["state"] == "running")
    power = simulated.json(f"/api/v1/drives/{drive}/power")
    assert power["state"] == 2 and power["held_by"].startswith("run:")
    wait_until(lambda: (simulated.json(path)["live_read_bytes_per_s"] or 0) > 0)
    assert simulated.post(path + "/cancel").status_code == 202
    run = wait_until(lambda: (lambda x: x if x["ended_at"] else None)(simulated.json(path)))
    assert run["state"] == "cancelled"
    wait_until(lambda: simulated.json(f"/api/v1/drives/{drive}/power")["state"] == 0)
    assert simulated.post(path + "/cancel").status_code == 409


def test_delete_removes_a_run_that_is_over(simulated):
    drive = simulated.drives()[3]["id"]
    run = simulated.run(drives=[drive], workload="idle", runtime_s=1)
    assert simulated.delete(run["href"]).status_code == 204
    assert simulated.get(run["href"]).status_code == 404


@pytest.mark.parametrize(
    "change, pointer",
    [
        ({"drives": []}, "/drives"),
        ({"drives": ["nothing"]}, "/drives/0"),
        ({"drives": None}, "/drives"),
        ({"workload": "no-such"}, "/workload"),
        ({"workload": {"pattern": "exec"}}, "/workload/pattern"),
        ({"workload": {"pattern": "read", "block_bytes": 100}}, "/workload/block_bytes"),
        ({"workload": {"pattern": "read", "block_bytes": 1 << 24, "iodepth": 512}}, "/workload/iodepth"),
        ({"workload": {"pattern": "read", "ioengine": "net"}}, "/workload/ioengine"),
        ({"runtime_s": 0}, "/runtime_s"),
        ({"runtime_s": "5"}, "/runtime_s"),
        ({"power_state": 7}, "/power_state"),
        ({"confirm_destructive": ["no-such-serial"]}, "/confirm_destructive"),
        ({"exec_prerun": "id"}, "/exec_prerun"),
    ],
)
def test_bad_requests_name_the_field(simulated, change, pointer):
    body = {"drives": [simulated.drives()[0]["id"]], "workload": "seq-read-128k", "runtime_s": 5, **change}
    r = simulated.post("/api/v1/benchmarks", body)
    assert r.status_code == 400, r.text
    assert r.json()["errors"][0]["pointer"].startswith(pointer)


def test_own_workload(simulated):
    shape = {"pattern": "randread", "block_bytes": 16384, "iodepth": 8, "jobs": 2}
    assert simulated.put("/api/v1/workloads/mine", shape).status_code == 201
    assert simulated.put("/api/v1/workloads/mine", shape).status_code == 200
    assert simulated.json("/api/v1/workloads/mine")["jobs"] == 2
    names = [w["name"] for w in simulated.json("/api/v1/workloads")["items"]]
    assert "mine" in names and "rand-mixed-70-30-8k" in names
    run = simulated.run(drives=[simulated.drives()[2]["id"]], workload="mine", runtime_s=3)
    assert run["state"] == "completed", run["reason"]
    assert simulated.put("/api/v1/workloads/seq-read-128k", shape).status_code == 409
    assert simulated.delete("/api/v1/workloads/mine").status_code == 204
    assert simulated.get("/api/v1/workloads/mine").status_code == 404


def test_history_covers_the_run(simulated, completed):
    span = f"from={completed['started_at']}&to={completed['ended_at']}"
    history = simulated.json(f"/api/v1/hosts/local/energy?{span}&step=1s")
    assert history["simulated"] and history["total"]["energy_kwh"] > 0
    assert any(p["avg_w"] for p in history["points"])
    csv = simulated.get(f"/api/v1/hosts/local/energy?{span}&step=1s", headers={"Accept": "text/csv"})
    assert csv.text.splitlines()[0].startswith("at,avg_w")
    series = simulated.json("/api/v1/series?host=local&object=host&quantity=power")["items"][0]
    assert simulated.json(series["href"])["quality"] == "simulated"
    assert simulated.json(series["href"] + "/samples?from=-10m")["items"]


def test_kill_9_marks_the_run_interrupted(start):
    service = start("--simulate", "2")
    drive = service.drives()[0]["id"]
    r = service.post(
        "/api/v1/benchmarks", {"drives": [drive], "workload": "rand-read-4k", "power_state": 2, "runtime_s": 600}
    )
    wait_until(lambda: service.json(r.headers["Location"])["state"] == "running")
    service.kill()
    service.start()
    assert service.json(r.headers["Location"])["state"] == "interrupted"
    wait_until(lambda: service.json(f"/api/v1/drives/{drive}/power")["state"] == 0)
    assert service.json(f"/api/v1/drives/{drive}/power")["claims"] == []
