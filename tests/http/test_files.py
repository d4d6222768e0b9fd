"""Benchmarks on files and block devices beside NVMe drives: consent, and what is really written."""

import json
import os
import subprocess

import pytest
from service import Service, problem, wait_until

MIB = 1 << 20
SIZE = 16 * MIB


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("targets")


def make_file(directory, name):
    path = directory / name
    path.write_bytes(os.urandom(SIZE))
    return path


def service_for(paths, *flags):
    targets = [word for path in paths for word in ("--target", str(path))]
    service = Service("--settle", "50ms", *targets, *flags).start()
    wait_until(lambda: len(service.drives()) >= len(paths), what="targets are listed")
    return service


@pytest.fixture(scope="module")
def paths(directory):
    return [make_file(directory, "a.img"), make_file(directory, "b.img")]


@pytest.fixture(scope="module")
def careful(paths):
    """Without the permission to write."""
    service = service_for(paths)
    yield service
    service.close()


@pytest.fixture(scope="module")
def bold(directory):
    """With the permission to write, on files of its own."""
    service = service_for([make_file(directory, "c.img"), make_file(directory, "d.img")], "--allow-destructive")
    yield service
    service.close()


def file_of(service, number=0):
    return sorted(service.drives(), key=lambda d: d["name"])[number]


@pytest.fixture
def contents(directory):
    """Reads a drive's file."""
    return lambda drive: (directory / drive["address"]).read_bytes()


def fio_bytes(service, run, direction):
    """By fio's own document."""
    document = json.loads(service.get(run["href"] + "/fio").text)
    return sum(job[direction]["io_bytes"] for job in document["jobs"])


# -- what is seen -----------------------------------------------------------------------------------


def test_files_are_listed_as_what_they_are(careful, paths):
    drives = careful.drives()
    assert len(drives) == len(paths)
    for d in drives:
        assert d["kind"] == "file" and d["simulated"] is False
        assert d["capacity_bytes"] == SIZE
        assert careful.json(d["href"])["namespaces"][0]["path"] == d["address"]
    assert {d["address"] for d in drives} == {p.name for p in paths}


def test_files_have_no_power_states(careful):
    drive = file_of(careful)
    power = careful.json(drive["href"] + "/power")
    assert power["states"] == [] and power["state"] is None
    r = careful.put(drive["href"] + "/power/desired", {"state": 0})
    assert r.status_code in (400, 409, 422, 501), r.text
    body = {"drives": [drive["id"]], "workload": "seq-read-128k", "power_state": 0}
    problem(careful.post("/api/v1/benchmarks", body), 400, "/power_state")


def test_a_target_that_is_missing_is_told(start, directory):
    service = start("--target", str(directory / "nothing.img"))
    reason = wait_until(lambda: service.json("/api/v1/drives")["drives_reason"])
    assert "nothing.img" in reason


# -- reading ----------------------------------------------------------------------------------------


def test_reading_is_allowed_and_changes_nothing(careful, contents):
    drive = file_of(careful)
    before = contents(drive)
    run = careful.run(drives=[drive["id"]], workload="seq-read-128k", runtime_s=2)
    assert run["state"] == "completed", run["reason"]
    read = run["result"]["total"]["read"]
    assert 0 < read["bytes"] <= fio_bytes(careful, run, "read")  # over the window, over the run
    assert run["result"]["total"]["write"]["bytes"] == 0
    assert run["result"]["simulated"] is False and run["result"]["scale"] == 1
    assert run["result"]["environment"]["engine"] == "libaio"
    assert contents(drive) == before


def test_without_a_meter_the_figures_are_null_with_a_reason(careful):
    run = careful.run(drives=[file_of(careful)["id"]], workload="rand-read-4k", runtime_s=1)
    power = run["result"]["power"]
    assert power["system_w"] is None and power["reason"] == "the host has no power meter"
    assert power["above_baseline_w"] is None and power["drive_w"] is None
    for figure in ("system_w", "above_baseline_w", "per_drive_w", "uncertainty_w", "bound_w", "drive_w"):
        assert power["reasons"][figure]
    for scope in run["result"]["efficiency"].values():
        assert scope["iops_per_w"] is None and scope["reason"]


def test_two_files_run_together(careful):
    ids = [d["id"] for d in careful.drives()]
    run = careful.run(drives=ids, workload="rand-read-4k", runtime_s=2)
    assert run["state"] == "completed", run["reason"]
    assert [d["drive"] for d in run["result"]["drives"]] == ids
    assert all(d["read"]["bytes"] > 0 for d in run["result"]["drives"])
    series = careful.json(run["href"] + "/series")
    assert series["step_s"] == 1 and sum(p["read_bytes_per_s"] for p in series["points"]) > 0
    assert all(p["power_w"] is None for p in series["points"])


def test_a_workload_larger_than_the_file_is_refused(careful):
    body = {"drives": [file_of(careful)["id"]], "workload": {"pattern": "read", "size_bytes": 10 * SIZE}}
    problem(careful.post("/api/v1/benchmarks", body), 400, "/workload/size_bytes")


def test_the_same_drive_twice_is_refused(careful):
    id_ = file_of(careful)["id"]
    body = {"drives": [id_, id_], "workload": "seq-read-128k"}
    problem(careful.post("/api/v1/benchmarks", body), 400, "/drives/1")


def test_idle_measures_nothing_and_says_so(careful):
    run = careful.run(drives=[file_of(careful)["id"]], workload="idle", runtime_s=1)
    assert run["state"] == "completed", run["reason"]
    assert run["result"]["fio"]["version"] is None and run["result"]["fio"]["reason"]
    assert run["result"]["total"]["read"]["bytes"] == 0
    assert careful.get(run["href"] + "/fio").status_code == 404


# -- writing ----------------------------------------------------------------------------------------


def writes(service, drive, **fields):
    body = {"drives": [drive["id"]], "workload": "seq-write-128k", "runtime_s": 1, **fields}
    return service.post("/api/v1/benchmarks", body)


def test_writing_needs_the_servers_permission(careful, contents):
    drive = file_of(careful)
    before = contents(drive)
    problem(writes(careful, drive), 403)
    problem(writes(careful, drive, confirm_destructive=[drive["serial"]]), 403)
    assert contents(drive) == before
    assert careful.json("/api/v1/system")["allow_destructive"] is False


@pytest.mark.parametrize("workload", ["seq-write-128k", "rand-write-4k", "rand-mixed-70-30-4k", {"pattern": "rw"}])
def test_writing_needs_the_serial(bold, workload, contents):
    drive, other = file_of(bold), file_of(bold, 1)
    before = contents(drive)
    problem(writes(bold, drive, workload=workload), 403, "/confirm_destructive")
    wrong = [[other["serial"]], [drive["id"]], [drive["serial"].lower() + "x"]]
    for serials in wrong:
        r = writes(bold, drive, workload=workload, confirm_destructive=serials)
        assert r.status_code in (400, 403), r.text
        assert r.json()["errors"][0]["pointer"].startswith("/confirm_destructive")
    assert contents(drive) == before


def test_each_drive_needs_its_own_consent(bold, contents):
    drives = [file_of(bold), file_of(bold, 1)]
    before = [contents(d) for d in drives]
    r = writes(bold, drives[0], drives=[d["id"] for d in drives], confirm_destructive=[drives[0]["serial"]])
    problem(r, 403, "/confirm_destructive")
    assert [contents(d) for d in drives] == before


@pytest.mark.parametrize("workload", ["seq-write-128k", "rand-write-4k"])
def test_confirmed_writes_are_bounded(bold, workload, contents):
    drive = file_of(bold)
    other = contents(file_of(bold, 1))
    before = contents(drive)
    run = bold.run(
        drives=[drive["id"]],
        workload=workload,
        runtime_s=2,
        confirm_destructive=[drive["serial"]],
        max_write_bytes=3 * MIB,
    )
    assert run["state"] == "completed", run["reason"]
    written = fio_bytes(bold, run, "write")
    assert 0 < written <= 3 * MIB
    assert 0 < run["result"]["total"]["write"]["bytes"] <= written
    after = contents(drive)
    assert after != before and len(after) == SIZE
    assert sum(a != b for a, b in zip(before, after)) <= 3 * MIB
    assert contents(file_of(bold, 1)) == other


def test_the_bound_is_of_each_drive(bold):
    drives = [file_of(bold), file_of(bold, 1)]
    run = bold.run(
        drives=[d["id"] for d in drives],
        workload={"pattern": "randwrite", "jobs": 2, "iodepth": 8},
        runtime_s=2,
        confirm_destructive=[d["serial"] for d in drives],
        max_write_bytes=2 * MIB,
    )
    assert run["state"] == "completed", run["reason"]
    for drive in run["result"]["drives"]:
        assert 0 < drive["write"]["bytes"] <= 2 * MIB


def test_mixed_writes_are_bounded(bold):
    drive = file_of(bold)
    run = bold.run(
        drives=[drive["id"]],
        workload="rand-mixed-70-30-4k",
        runtime_s=2,
        confirm_destructive=[drive["serial"]],
        max_write_bytes=MIB,
    )
    assert run["state"] == "completed", run["reason"]
    assert run["result"]["total"]["read"]["bytes"] > 0
    assert 0 < fio_bytes(bold, run, "write") <= MIB


def test_a_file_system_is_not_written_over(directory, start):
    path = directory / "fs.img"
    path.write_bytes(bytes(SIZE))
    assert os.system(f"mkfs.ext4 -q {path}") == 0
    service = start("--target", str(path), "--allow-destructive", "--settle", "50ms")
    drive = wait_until(service.drives)[0]
    before = path.read_bytes()
    body = {
        "drives": [drive["id"]],
        "workload": "rand-write-4k",
        "runtime_s": 1,
        "confirm_destructive": [drive["serial"]],
        "max_write_bytes": MIB,
    }
    r = service.post("/api/v1/benchmarks", body)
    if r.status_code == 202:
        path_ = r.headers["Location"]
        run = wait_until(lambda: (lambda x: x if x["ended_at"] else None)(service.json(path_)))
        assert run["state"] == "failed" and "ext4" in run["reason"]
    else:
        assert r.status_code == 409 and "ext4" in r.text
    assert path.read_bytes() == before
    run = service.run(**body, override_signature=True)
    assert run["state"] == "completed", run["reason"]
    assert path.read_bytes() != before


# -- somebody else's hands --------------------------------------------------------------------------


def refused(service, body):
    """Why a run did not come to be, or failed before it touched anything."""
    r = service.post("/api/v1/benchmarks", body)
    if r.status_code != 202:
        assert r.status_code in (400, 403, 404, 409), r.text
        return r.text
    location = r.headers["Location"]
    run = wait_until(lambda: (lambda x: x if x["ended_at"] else None)(service.json(location)))
    assert run["state"] == "failed", run
    return run["reason"]


def runs_in_the_end(service, body):
    """A refusal makes the daemon look again."""
    r = wait_until(lambda: (lambda r: r if r.status_code == 202 else None)(service.post("/api/v1/benchmarks", body)))
    location = r.headers["Location"]
    run = wait_until(lambda: (lambda x: x if x["ended_at"] else None)(service.json(location)))
    assert run["state"] == "completed", run["reason"]


def write_to(drive):
    return {
        "drives": [drive["id"]],
        "workload": "seq-write-128k",
        "runtime_s": 1,
        "confirm_destructive": [drive["serial"]],
        "max_write_bytes": MIB,
    }


def test_consent_is_for_a_file_and_not_for_its_name(start, tmp_path):
    path, bait = make_file(tmp_path, "target.img"), make_file(tmp_path, "bait.img")
    service = start("--target", str(path), "--allow-destructive", "--settle", "50ms", "--rescan", "1h")
    drive = wait_until(service.drives)[0]
    before = bait.read_bytes()
    os.rename(bait, path)
    reason = refused(service, write_to(drive))
    assert "another file" in reason and drive["serial"] in reason
    assert path.read_bytes() == before


def test_a_replaced_file_is_another_drive(start, tmp_path):
    path, bait = make_file(tmp_path, "target.img"), make_file(tmp_path, "bait.img")
    service = start("--target", str(path), "--allow-destructive", "--settle", "50ms", "--rescan", "200ms")
    old = wait_until(service.drives)[0]
    os.rename(bait, path)
    new = wait_until(lambda: [d for d in service.drives() if d["id"] != old["id"] and d["state"] == "live"])[0]
    assert new["serial"] != old["serial"]
    body = {**write_to(new), "confirm_destructive": [old["serial"]]}
    problem(service.post("/api/v1/benchmarks", body), 403, "/confirm_destructive")
    assert service.run(**write_to(new))["state"] == "completed"


@pytest.mark.parametrize("mode,uid", [(0o777, 0), (0o775, 0), (0o1777, 0), (0o755, 12345)])
def test_a_target_that_others_could_swap_is_not_taken(start, tmp_path, mode, uid):
    directory = tmp_path / "way"
    directory.mkdir()
    path = make_file(directory, "target.img")
    os.chown(directory, uid, uid)
    directory.chmod(mode)
    service = start("--target", str(path), "--allow-destructive")
    reason = wait_until(lambda: service.json("/api/v1/drives")["drives_reason"])
    assert "directory on the way" in reason
    assert service.drives() == []


def test_a_link_is_not_taken(start, tmp_path):
    path = tmp_path / "link.img"
    path.symlink_to(make_file(tmp_path, "target.img"))
    service = start("--target", str(path), "--allow-destructive")
    assert "is a link" in wait_until(lambda: service.json("/api/v1/drives")["drives_reason"])


@pytest.fixture
def linked(tmp_path, start):
    """A file with a second name that is the target, and the service for it."""
    path = make_file(tmp_path, "file.img")
    path.chmod(0o600)
    os.link(path, tmp_path / "target.img")
    service = start("--target", str(tmp_path / "target.img"), "--allow-destructive", "--settle", "50ms")
    return path, service, wait_until(service.drives)[0]


def test_a_swap_file_under_another_name_is_seen(linked):
    path, service, drive = linked
    subprocess.run(["mkswap", path], check=True, capture_output=True)
    subprocess.run(["swapon", path], check=True)
    try:
        assert "it is a swap file" in refused(service, write_to(drive) | {"override_signature": True})
    finally:
        subprocess.run(["swapoff", path], check=True)
    runs_in_the_end(service, write_to(drive) | {"override_signature": True})


def test_a_loop_device_under_another_name_is_seen(linked):
    path, service, drive = linked
    loop = subprocess.run(["losetup", "-f", "--show", path], check=True, capture_output=True, text=True).stdout.strip()
    before = path.read_bytes()
    try:
        assert f"{os.path.basename(loop)} is made of it" in refused(service, write_to(drive))
    finally:
        subprocess.run(["losetup", "-d", loop], check=True)
    assert path.read_bytes() == before
    runs_in_the_end(service, write_to(drive))


def test_consent_is_for_a_disk_and_not_for_its_name(start, tmp_path):
    """A loop device that is made of another file meanwhile."""
    first, second = make_file(tmp_path, "first.img"), make_file(tmp_path, "second.img")
    loop = subprocess.run(["losetup", "-f", "--show", first], check=True, capture_output=True, text=True).stdout.strip()
    try:
        service = start("--target", loop, "--allow-destructive", "--settle", "50ms", "--rescan", "1h")
        drive = wait_until(service.drives)[0]
        assert drive["kind"] == "block"
        before = second.read_bytes()
        subprocess.run(["losetup", "-d", loop], check=True)
        subprocess.run(["losetup", loop, second], check=True)
        assert drive["serial"] in refused(service, write_to(drive))
        assert second.read_bytes() == before
    finally:
        subprocess.run(["losetup", "-d", loop], check=True)
