"""?dry_run: everything is checked, and nothing is changed, stored or told."""

import os
import sqlite3
import uuid

import pytest
from service import PASSWORD, Service, problem, routes, tried, wait_until
from test_conditions import CHANGES

API = "/api/v1"


@pytest.fixture(scope="module")
def service():
    service = Service("--simulate", "2").start()
    wait_until(lambda: all(service.json(d["href"] + "/power")["state"] == 0 for d in service.drives()), 30, "states")
    yield service
    service.close()


def unique():
    return f"t-{uuid.uuid4().hex[:12]}"


def first(service):
    return service.drives()[0]["id"]


def running(service):
    body = {"drives": [service.drives()[1]["id"]], "workload": "idle", "runtime_s": 600}
    path = service.post(f"{API}/benchmarks", body).headers["Location"]
    wait_until(lambda: service.json(path)["state"] == "running", 60, path)
    return path + "/cancel"


# operation → (what makes its path, its body)
POSTS = {
    "power_change_create": (
        lambda s: f"{API}/power-changes",
        lambda s: {"drives": [first(s)], "desired": {"state": 2}},
    ),
    "host_create": (lambda s: f"{API}/hosts", lambda s: {"name": unique()}),
    "account_create": (
        lambda s: f"{API}/accounts",
        lambda s: {"name": unique(), "password": PASSWORD, "role": "ReadOnly"},
    ),
    "token_create": (lambda s: f"{API}/tokens", lambda s: {"name": unique()}),
    "benchmark_create": (
        lambda s: f"{API}/benchmarks",
        lambda s: {"drives": [first(s)], "workload": "idle", "runtime_s": 1},
    ),
    "benchmark_cancel": (running, lambda s: None),
}
# Those that need more than a simulated drive are tried where that is.
ELSEWHERE = {"task_cancel", "host_power_patch"}


def is_own(line):
    """What the daemon writes by itself, whenever it comes to it: progress, what it has set, leases that are over."""
    return (
        line.startswith('INSERT INTO "run"')
        or line.startswith('INSERT INTO "event"')
        and ",'system'," in line
        or line.startswith('INSERT INTO "claim"')
        and ",'lease'," in line
    )


def control(service):
    return sqlite3.connect(os.path.join(service.data_dir, "control.db"))


def stored(service):
    """All rows of control.db but the daemon's own, and the counters behind their ids."""
    with control(service) as db:
        return [s for s in db.iterdump() if not is_own(s) and "sqlite_sequence" not in s]


def is_ended_in_the_store(service, table, items):
    """Ends are shown before they are stored."""
    with control(service) as db:
        ended = dict(db.execute(f"SELECT id, ended_ms IS NOT NULL FROM {table}"))
    return all(ended.get(i["id"]) == bool(i["ended_at"]) for i in items)


def is_quiet(service):
    """What earlier tests have begun has ended, but for benchmarks that run for long."""
    tasks = service.json(f"{API}/tasks?limit=1000")["items"]
    runs = service.json(f"{API}/benchmarks?limit=1000")["items"]
    ending = [r for r in runs if not r["ended_at"] and r["runtime_s"] < 600 or r["reason"] and not r["ended_at"]]
    if not is_ended_in_the_store(service, "task", tasks) or not is_ended_in_the_store(service, "run", runs):
        return False
    return not ending and all(t["ended_at"] for t in tasks) and all(d["power"]["in_sync"] for d in service.drives())


def case(service, operation):
    if operation in POSTS:
        path, body = POSTS[operation]
        return "POST", path(service), body(service)
    path, method, body = CHANGES[operation]
    return method, path(service), body()


def test_every_operation_that_can_is_tried_here():
    assert tried() == set(POSTS) | set(CHANGES) | ELSEWHERE


@pytest.mark.parametrize("operation", sorted(tried() - ELSEWHERE))
def test_a_trial_changes_nothing(service, operation):
    method, path, body = case(service, operation)
    shown = service.get(path) if method != "POST" else None
    before = wait_until(lambda: (lambda a: a if is_quiet(service) and stored(service) == a else None)(stored(service)))
    r = service.request(method, path + "?dry_run=true", json=body)
    assert r.status_code == (204 if method == "DELETE" else 200), r.text
    assert r.headers["Dry-Run"] == "true"
    assert "Location" not in r.headers and "ETag" not in r.headers
    assert stored(service) == before
    if shown is not None:
        again = service.get(path)
        assert again.status_code == 200
        assert again.headers["ETag"].split(".")[0] == shown.headers["ETag"].split(".")[0]
    # And the change itself goes on from there, answering alike.
    real = service.request(method, path, json=body)
    assert real.status_code in (200, 201, 202, 204), real.text
    assert "Dry-Run" not in real.headers
    if operation == "benchmark_cancel":
        wait_until(lambda: service.json(path[: -len("/cancel")])["ended_at"], 60, "the cancelled run")
    if method != "DELETE":
        assert set(r.json()) == set(real.json()) - {"token"}


@pytest.mark.parametrize("operation", sorted(set(CHANGES) & tried()))
def test_a_trial_is_checked_as_the_change_is(service, operation):
    method, path, body = case(service, operation)
    headers = {"If-Match": '"c99"'}
    problem(service.request(method, path + "?dry_run=true", json=body, headers=headers), 412)
    if body is not None:
        bad = {**body, "no_such_field": 1}
        problem(service.request(method, path + "?dry_run=true", json=bad), 400, pointer="/no_such_field")


def test_who_cannot_refuses_to_be_tried(service):
    refused = []
    for method, path, operation, _ in routes():
        if operation in tried() or not path.startswith(API):
            continue
        path = path.replace("{id}", service.drives()[0]["id"]).replace("{name}", "idle")
        r = service.request(method, path + "?dry_run=true")
        assert r.status_code == 400, operation
        assert r.json()["errors"][0]["parameter"] == "dry_run"
        refused.append(operation)
    assert "drives_list" in refused


def test_the_parameter_is_a_yes_or_no(service):
    path = f"{API}/workloads/{unique()}"
    problem(service.put(path + "?dry_run=perhaps", {"pattern": "read"}), 400, parameter="dry_run")
    assert service.put(path + "?dry_run=false", {"pattern": "read"}).status_code == 201


def test_a_trial_of_a_wish_tells_what_would_hold(service):
    drive = service.drives()[0]
    path = drive["href"] + "/power/desired"
    service.delete(path)
    r = service.put(path + "?dry_run=true", {"state": 2})
    assert r.status_code == 200
    body = r.json()
    assert body["state"] == 2 and body["effective_state"] == 2 and body["held_by"] == "admin"
    assert body["observed_state"] == 0 and body["in_sync"] is False and body["recorded"] is False
    assert service.json(drive["href"] + "/power")["claims"] == []
    problem(service.put(path + "?dry_run=true", {"state": 9}), 400, pointer="/state")
    problem(service.delete(path + "?dry_run=true"), 404)
    service.put(path, {"state": 1})
    assert service.delete(path + "?dry_run=true").status_code == 204
    assert service.json(path)["state"] == 1


def test_a_trial_of_a_policy_counts_its_drives(service):
    service.delete(service.drives()[0]["href"] + "/power/desired")
    body = {"selector": {}, "desired": {"state": 0}}
    r = service.put(f"{API}/policies/{unique()}?dry_run=true", body)
    assert r.json()["drives"] == {"selected": 2, "holding": 2, "in_sync": 2, "unable": 0}
    r = service.put(f"{API}/policies/{unique()}?dry_run=true", {**body, "desired": {"state": 7}})
    assert r.json()["drives"]["unable"] == 2


def test_a_trial_of_a_change_of_many_has_a_row_each(service):
    drives = service.drives()
    r = service.post(f"{API}/power-changes?dry_run=true", {"selector": {}, "desired": {"state": 2}})
    body = r.json()
    assert [row["drive"] for row in body["drives"]] == [d["id"] for d in drives]
    assert all(row["outcome"] == "ok" and row["result"]["recorded"] is False for row in body["drives"])
    r = service.post(f"{API}/power-changes?dry_run=true", {"selector": {}, "desired": {"state": 7}})
    assert all(row["outcome"] == "invalid" for row in r.json()["drives"])
    assert service.get(body["href"]).status_code == 404


def test_an_observer_may_try(start):
    service = start("--simulate", "1", "--observe-only")
    desired = service.drives()[0]["href"] + "/power/desired"
    wait_until(lambda: service.json(service.drives()[0]["href"] + "/power")["state"] == 0)
    assert service.put(desired + "?dry_run=true", {"state": 1}).json()["effective_state"] == 1
    body = {"selector": {}, "desired": {"state": 1}}
    assert service.put(f"{API}/policies/p?dry_run=true", body).json()["drives"]["holding"] == 1
    assert service.post(f"{API}/power-changes?dry_run=true", body).status_code == 200
    problem(service.put(desired, {"state": 1}), 403)
