"""Policies over HTTP: what they hold, who wins, and that a new drive is set before it is announced."""

import uuid

import pytest
from bed import Bed
from service import Service, problem, wait_until

API = "/api/v1"


@pytest.fixture
def policy(simulated):
    path = f"{API}/policies/t-{uuid.uuid4().hex[:12]}"
    yield path
    simulated.delete(path)


@pytest.fixture
def drive(simulated):
    return simulated.drives()[0]


def power(service, drive):
    return service.json(drive["href"] + "/power")


def body(state=1, **fields):
    return {"selector": {}, "desired": {"state": state}, **fields}


def test_a_policy_is_made_changed_and_removed(simulated, policy):
    r = simulated.put(policy, body(1, priority=3))
    assert r.status_code == 201 and r.headers["Location"] == policy
    made = r.json()
    assert made["priority"] == 3 and made["selector"] == {} and made["desired"] == {"state": 1}
    assert made["drives"]["selected"] == 4
    wait_until(lambda: all(power(simulated, d)["state"] == 1 for d in simulated.drives()), 30, "all set")
    assert simulated.json(policy)["drives"] == {"selected": 4, "holding": 4, "in_sync": 4, "unable": 0}
    assert simulated.put(policy, body(2)).status_code == 200
    wait_until(lambda: all(power(simulated, d)["state"] == 2 for d in simulated.drives()), 30, "all changed")
    assert policy in [p["href"] for p in simulated.json(f"{API}/policies")["items"]]
    assert simulated.delete(policy).status_code == 204
    problem(simulated.get(policy), 404)
    problem(simulated.delete(policy), 404)
    # They stay where they were, and nobody holds them.
    p = power(simulated, simulated.drives()[0])
    assert p["claims"] == [] and p["held_by"] is None and p["state"] == 2


def test_the_same_again_is_no_change(simulated, policy):
    first = simulated.put(policy, body(1))
    again = simulated.put(policy, body(1))
    assert again.status_code == 200
    assert again.headers["ETag"].split(".")[0] == first.headers["ETag"].split(".")[0]
    assert again.json()["changed_at"] == first.json()["changed_at"]


def test_tags_guard_a_policy(simulated, policy):
    tag = simulated.put(policy, body(1)).headers["ETag"]
    problem(simulated.put(policy, body(2), headers={"If-None-Match": "*"}), 412)
    assert simulated.put(policy, body(2), headers={"If-Match": tag}).status_code == 200
    problem(simulated.put(policy, body(0), headers={"If-Match": tag}), 412)
    problem(simulated.delete(policy, headers={"If-Match": tag}), 412)
    assert simulated.json(policy)["desired"] == {"state": 2}


def test_selectors_fit_slots_and_labels(simulated, policy, drive):
    r = simulated.put(policy, body(1, selector={"slot": drive["slot"], "host": "local"}))
    assert r.json()["drives"]["selected"] == 1
    assert r.json()["selector"]["host"] == simulated.json(f"{API}/system")["id"]
    wait_until(lambda: power(simulated, drive)["held_by"] == "policy:" + r.json()["name"])
    simulated.patch(drive["href"], {"labels": {"tier": "cold"}})
    simulated.put(policy, body(2, selector={"labels": {"tier": "cold"}, "model": drive["model"]}))
    wait_until(lambda: power(simulated, drive)["state"] == 2)
    simulated.patch(drive["href"], {"labels": {}})
    wait_until(lambda: power(simulated, drive)["held_by"] is None)


def test_the_drives_own_wish_wins(simulated, policy, drive):
    simulated.put(policy, body(2, selector={"slot": drive["slot"]}))
    wait_until(lambda: power(simulated, drive)["state"] == 2)
    desired = drive["href"] + "/power/desired"
    assert simulated.put(desired, {"state": 1}).json()["held_by"] == "admin"
    p = power(simulated, drive)
    assert p["state"] == 1 and sorted(c["kind"] for c in p["claims"]) == ["desired", "policy"]
    assert simulated.delete(desired).status_code == 204
    assert power(simulated, drive)["state"] == 2


def test_priority_decides_between_policies(simulated, policy, drive):
    other = policy + "-b"
    simulated.put(policy, body(1, selector={"slot": drive["slot"]}))
    simulated.put(other, body(2, selector={"slot": drive["slot"]}, priority=1))
    wait_until(lambda: power(simulated, drive)["state"] == 2)
    assert simulated.json(policy)["drives"]["holding"] == 0
    simulated.delete(other)
    wait_until(lambda: power(simulated, drive)["state"] == 1)


@pytest.mark.parametrize(
    "change, pointer",
    [
        ({"selector": None}, "/selector"),
        ({"selector": {"colour": "red"}}, "/selector/colour"),
        ({"selector": {"model": 7}}, "/selector/model"),
        ({"selector": {"labels": {"a": 1}}}, "/selector/labels"),
        ({"selector": {"host": str(uuid.uuid4())}}, "/selector/host"),
        ({"desired": {}}, "/desired/state"),
        ({"desired": {"state": 1, "limit_w": 10}}, "/desired/limit_w"),
        ({"desired": {"state": 32}}, "/desired/state"),
        ({"desired": {"limit_w": -1}}, "/desired/limit_w"),
        ({"priority": 1001}, "/priority"),
        ({"priority": "high"}, "/priority"),
        ({"name": "x"}, "/name"),
    ],
)
def test_bad_policies_name_the_field(simulated, policy, change, pointer):
    problem(simulated.put(policy, {**body(), **change}), 400, pointer=pointer)
    problem(simulated.get(policy), 404)


def test_missing_parts_are_named(simulated, policy):
    problem(simulated.put(policy, {"desired": {"state": 1}}), 400, pointer="/selector")
    problem(simulated.put(policy, {"selector": {}}), 400, pointer="/desired")
    problem(simulated.put(f"{API}/policies/.x", body()), 400)


def test_an_observer_takes_no_policy(start):
    service = start("--simulate", "1", "--observe-only")
    problem(service.put(f"{API}/policies/p", body()), 403)


# -- a drive that comes ------------------------------------------------------------------------------


def events_of(service, drive):
    items = service.json(f"{API}/events?limit=1000")["items"]
    return [e["type"] for e in items if e["object"] == drive["href"]]


def test_a_drive_that_comes_is_set_before_it_is_announced():
    bed = Bed(2)
    service = Service("--rescan", "200ms", "--reconcile", "1h", prefix=bed.prefix, env=bed.environment)
    try:
        service.start()
        wait_until(lambda: len(service.drives()) == 2, what="both drives")
        service.put(f"{API}/policies/cool", body(2, selector={"slot": "0000:01:00.0"}))
        wait_until(lambda: bed.get(0, "power") == 2, what="the policy in force")
        drive = next(d for d in service.drives() if d["serial"] == "BED0000")
        bed.unplug(0)
        wait_until(lambda: service.json(drive["href"])["state"] == "gone", what="the drive is gone")
        seen = len(events_of(service, drive))
        bed.plug(0)
        assert bed.get(0, "power") == 0
        wait_until(lambda: service.json(drive["href"])["state"] == "live", what="the drive is back")
        assert bed.get(0, "power") == 2
        news = wait_until(lambda: (lambda e: e if "drive.added" in e else None)(events_of(service, drive)[seen:]))
        assert news.index("power.applied") < news.index("drive.added")
        assert bed.get(1, "power") == 0
    finally:
        service.close()
        bed.close()
