"""Changes of many drives at once, as tasks."""

import uuid

import pytest
from bed import Bed
from service import Service, problem, wait_until

API = "/api/v1"
FINAL = ("completed", "failed", "cancelled", "interrupted")


def ended(service, path, timeout_s=60):
    return wait_until(
        lambda: (lambda t: t if t["state"] in FINAL else None)(service.json(path)), timeout_s, f"the end of {path}"
    )


def change(service, desired, **fields):
    r = service.post(f"{API}/power-changes", {"desired": desired, **fields})
    assert r.status_code == 202, r.text
    return r.headers["Location"]


@pytest.fixture
def drives(simulated):
    yield simulated.drives()
    ended(simulated, change(simulated, None, selector={}))


def states(service):
    return [service.json(d["href"] + "/power")["state"] for d in service.drives()]


def test_one_wish_for_all(simulated, drives):
    r = simulated.post(f"{API}/power-changes", {"selector": {}, "desired": {"state": 2}})
    assert r.status_code == 202
    begun = r.json()
    assert begun["href"] == r.headers["Location"] and begun["desired"] == {"state": 2}
    done = ended(simulated, begun["href"])
    assert done["state"] == "completed" and done["progress"] == 1 and done["owner"] == "admin"
    assert {d["drive"] for d in done["drives"]} == {d["id"] for d in drives}
    for row in done["drives"]:
        assert row["state"] == "completed" and row["outcome"] == "ok"
        assert row["reason"] is None and row["nvme_status"] is None
        assert row["result"] == {"observed_state": 2, "in_sync": True, "recorded": True}
    assert states(simulated) == [2, 2, 2, 2]
    desired = simulated.json(drives[0]["href"] + "/power/desired")
    assert desired["state"] == 2 and desired["held_by"] == "admin"
    task = simulated.json(done["task"])
    assert task["kind"] == "power.change" and task["resource"] == done["href"]
    assert task["targets"] == {"total": 4, "waiting": 0, "running": 0, "completed": 4, "failed": 0, "cancelled": 0}


def test_a_change_may_have_an_end(simulated, drives):
    path = change(simulated, {"state": 1, "ttl_s": 86400}, drives=[drives[0]["id"]])
    end = ended(simulated, path)["desired"]["expires_at"]
    assert simulated.json(drives[0]["href"] + "/power/desired")["expires_at"] == end


def test_null_ends_the_wish(simulated, drives):
    ended(simulated, change(simulated, {"state": 1}, drives=[drives[0]["id"]]))
    # One of whom nothing was desired has what is asked for.
    done = ended(simulated, change(simulated, None, drives=[drives[0]["id"], drives[1]["id"]]))
    assert done["state"] == "completed" and done["desired"] is None
    assert states(simulated)[0] == 0
    problem(simulated.get(drives[0]["href"] + "/power/desired"), 404)


def test_what_does_not_suit_a_drive_is_its_outcome(simulated, drives):
    done = ended(simulated, change(simulated, {"state": 9}, drives=[drives[0]["id"]]))
    assert done["state"] == "failed"
    row = done["drives"][0]
    assert row["outcome"] == "invalid" and "power states 0 to 2" in row["reason"] and row["result"] is None


def test_tasks_are_listed_and_filtered(simulated, drives):
    made = [change(simulated, {"state": 1}, drives=[d["id"]]) for d in drives]
    for path in made:
        ended(simulated, path)
    listed = [c["href"] for c in simulated.json(f"{API}/power-changes?limit=4")["items"]]
    assert listed == made[::-1]
    page = simulated.json(f"{API}/tasks?limit=2&kind=power.change&state=completed")
    assert [t["resource"] for t in page["items"]] == made[:1:-1]
    rest = simulated.json(f"{API}/tasks?limit=2&cursor={page['next']}")
    assert [t["resource"] for t in rest["items"]] == made[1::-1]
    assert simulated.json(f"{API}/tasks?kind=other")["items"] == []
    problem(simulated.get(f"{API}/tasks?state=odd"), 400, parameter="state")
    targets = simulated.json(page["items"][0]["href"] + "/targets")
    assert [t["href"] for t in targets["items"]] == [drives[3]["href"]] and targets["next"] is None
    problem(simulated.get(f"{API}/tasks/{uuid.uuid4()}/targets"), 404)
    problem(simulated.get(f"{API}/tasks/{uuid.uuid4()}"), 404)
    problem(simulated.get(f"{API}/power-changes/{uuid.uuid4()}"), 404)


def test_targets_come_in_pages(simulated, drives):
    path = ended(simulated, change(simulated, {"state": 1}, selector={}))["task"] + "/targets"
    seen, cursor = [], ""
    while cursor is not None:
        page = simulated.json(path + "?limit=3" + (f"&cursor={cursor}" if cursor else ""))
        seen += page["items"]
        cursor = page["next"]
    assert [t["id"] for t in seen] == ["0", "1", "2", "3"]
    assert [t["href"] for t in seen] == [d["href"] for d in drives]


def test_a_repeated_request_is_one_change(simulated, drives):
    headers = {"Idempotency-Key": uuid.uuid4().hex}
    body = {"drives": [drives[0]["id"]], "desired": {"state": 1}}
    first = simulated.post(f"{API}/power-changes", body, headers=headers)
    again = simulated.post(f"{API}/power-changes", body, headers=headers)
    assert again.status_code == 202 and again.headers["Idempotency-Replayed"] == "true"
    assert again.json()["id"] == first.json()["id"]
    problem(simulated.post(f"{API}/power-changes", {**body, "desired": None}, headers=headers), 422)


@pytest.mark.parametrize(
    "body, pointer",
    [
        ({"drives": ["x"], "desired": {"state": 1}}, "/drives/0"),
        ({"drives": [7], "desired": {"state": 1}}, "/drives/0"),
        ({"drives": [], "desired": {"state": 1}}, "/drives"),
        ({"desired": {"state": 1}}, "/drives"),
        ({"selector": {}, "drives": ["x"], "desired": {"state": 1}}, "/drives"),
        ({"selector": {"model": "nothing"}, "desired": {"state": 1}}, "/selector"),
        ({"selector": {"x": 1}, "desired": {"state": 1}}, "/selector/x"),
        ({"selector": {}}, "/desired"),
        ({"selector": {}, "desired": {}}, "/desired/state"),
        ({"selector": {}, "desired": {"state": 1, "limit_w": 1}}, "/desired/limit_w"),
        ({"selector": {}, "desired": {"state": 1}, "leave": True}, "/leave"),
    ],
)
def test_bad_changes_name_the_field(simulated, body, pointer):
    before = len(simulated.json(f"{API}/tasks")["items"])
    problem(simulated.post(f"{API}/power-changes", body), 400, pointer=pointer)
    assert len(simulated.json(f"{API}/tasks")["items"]) == before


def test_a_drive_named_twice_is_refused(simulated):
    id = simulated.drives()[0]["id"]
    r = simulated.post(f"{API}/power-changes", {"drives": [id, id], "desired": {"state": 1}})
    problem(r, 400, pointer="/drives/1")


def test_an_observer_changes_nothing(start):
    service = start("--simulate", "1", "--observe-only")
    problem(service.post(f"{API}/power-changes", {"selector": {}, "desired": {"state": 1}}), 403)


def test_a_task_that_is_over_cannot_be_cancelled(simulated, drives):
    done = ended(simulated, change(simulated, {"state": 1}, drives=[drives[0]["id"]]))
    problem(simulated.post(done["task"] + "/cancel"), 409)
    problem(simulated.post(f"{API}/tasks/{uuid.uuid4()}/cancel"), 404)
    assert simulated.get(done["task"]).headers["ETag"] == '"c1"'


# -- drives that refuse, hang and come back, and a service that ends meanwhile ---------------------------

COUNT = 20


@pytest.fixture(scope="module")
def bed():
    bed = Bed(COUNT)
    yield bed
    bed.close()


@pytest.fixture
def service(bed):
    for n in range(COUNT):
        bed.set(n, hang=0, power_fixed=0, power=0)
    service = Service(
        *("--drive-timeout", "60s", "--command-timeout", "50s", "--health", "1h", "--reconcile", "1h"),
        prefix=bed.prefix,
        env=bed.environment,
    ).start()
    wait_until(lambda: len(service.drives()) == COUNT, what="all drives")
    wait_until(lambda: None not in states(service), what="all states")
    yield service
    for n in range(COUNT):
        bed.set(n, hang=0)
    service.close()


def test_a_refusal_shows_the_status(service, bed):
    bed.set(3, power_fixed=1)
    done = ended(service, change(service, {"state": 1}, selector={}))
    assert done["state"] == "failed"
    failed = [r for r in done["drives"] if r["state"] == "failed"]
    assert len(failed) == 1 and failed[0]["outcome"] == "refused" and failed[0]["nvme_status"] == 0x410E
    assert service.json(failed[0]["href"])["serial"] == "BED0003"
    assert sum(bed.get(n, "power") == 1 for n in range(COUNT)) == COUNT - 1


def test_a_cancelled_change_begins_with_no_more(service, bed):
    for n in range(COUNT):
        bed.set(n, hang=1)
    path = change(service, {"state": 1}, selector={})
    # So many at once, and the others wait for them.
    wait_until(lambda: service.json(path)["targets"]["running"] == 16, what="16 under way")
    assert service.json(path)["targets"]["waiting"] == COUNT - 16
    cancel = service.json(path)["task"] + "/cancel"
    r = service.post(cancel + "?dry_run=true")
    assert r.status_code == 200 and r.json()["cancelling"] and r.json()["targets"]["waiting"] == 0
    assert service.json(path)["targets"]["waiting"] == COUNT - 16 and not service.json(path)["cancelling"]
    r = service.post(cancel)
    assert r.status_code == 202 and r.json()["cancelling"] and r.json()["state"] == "running"
    for n in range(COUNT):
        bed.set(n, hang=0)
    done = ended(service, path)
    assert done["state"] == "cancelled"
    assert done["targets"]["completed"] == 16 and done["targets"]["cancelled"] == COUNT - 16
    assert sum(bed.get(n, "power") == 1 for n in range(COUNT)) == 16


def test_a_change_goes_on_after_a_restart(service, bed):
    for n in range(1, COUNT):
        bed.set(n, hang=1)
    path = change(service, {"state": 2}, selector={})
    wait_until(lambda: service.json(path)["targets"]["running"] >= 15, what="many under way")
    service.kill()
    for n in range(COUNT):
        bed.set(n, hang=0)
    service.start()
    done = ended(service, path)
    assert done["state"] == "completed", done
    assert [bed.get(n, "power") for n in range(COUNT)] == [2] * COUNT
