"""Drives and their power states over HTTP, on simulated ones."""

import pytest
from service import problem, wait_until


@pytest.fixture
def drive(simulated):
    item = simulated.drives()[0]
    yield item
    simulated.delete(f"/api/v1/drives/{item['id']}/power/desired")


def power(service, drive):
    return service.json(f"/api/v1/drives/{drive['id']}/power")


def desired_path(drive):
    return f"/api/v1/drives/{drive['id']}/power/desired"


def test_list_shows_what_was_asked_for(simulated):
    drives = simulated.drives()
    assert len(drives) == 4
    assert all(d["simulated"] and d["kind"] == "simulated" for d in drives)
    assert len({d["serial"] for d in drives}) == 4
    assert [d["id"] for d in drives] == sorted(d["id"] for d in drives)


def test_pages_follow_the_cursor(simulated):
    seen, cursor = [], None
    while True:
        path = "/api/v1/drives?limit=3" + (f"&cursor={cursor}" if cursor else "")
        page = simulated.json(path)
        seen += [d["id"] for d in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == [d["id"] for d in simulated.drives()]


def test_one_drive_has_namespaces_and_health(simulated, drive):
    d = simulated.json(drive["href"])
    assert d["namespaces"][0]["size_bytes"] > 0
    assert d["namespaces"][0]["in_use"] is False
    wait_until(lambda: simulated.get(drive["href"] + "/health").status_code == 200)
    assert simulated.json(drive["href"] + "/health")["health"] == "ok"
    assert simulated.json(drive["href"] + "/thermal")["composite_c"] > 0


def test_states_of_the_default_model(simulated, drive):
    p = power(simulated, drive)
    assert [s["max_w"] for s in p["states"]] == [25, 15, 10]
    assert all(s["operational"] for s in p["states"])
    assert p["measured_w"] is None and p["measured_reason"]


def test_put_sets_and_reads_back(simulated, drive):
    r = simulated.put(desired_path(drive), {"state": 1})
    assert r.status_code == 201
    assert r.json()["state"] == 1
    assert r.json()["observed_state"] == 1
    assert r.json()["in_sync"] and r.json()["recorded"]
    p = power(simulated, drive)
    assert p["state"] == 1 and p["held_by"] == "admin"
    assert p["effective"]["state"] == 1


def test_put_twice_is_no_change(simulated, drive):
    simulated.put(desired_path(drive), {"state": 2})
    first = simulated.get(desired_path(drive))
    again = simulated.put(desired_path(drive), {"state": 2})
    assert again.status_code == 200
    # The part of the tag that tells what is configured; the rest moves with every reading.
    assert again.headers["ETag"].split(".")[0] == first.headers["ETag"].split(".")[0]
    assert simulated.get(desired_path(drive)).json() == first.json()


def test_a_wish_with_an_end_ends_by_itself(simulated, drive):
    r = simulated.put(desired_path(drive), {"state": 2, "ttl_s": 86400})
    end = r.json()["expires_at"]
    assert end and simulated.json(desired_path(drive))["expires_at"] == end
    assert power(simulated, drive)["claims"][0]["expires_at"] == end
    r = simulated.put(desired_path(drive), {"state": 2, "expires_at": end})
    assert r.json()["expires_at"] == end
    assert simulated.put(desired_path(drive), {"state": 2}).json()["expires_at"] is None
    r = simulated.put(desired_path(drive) + "?dry_run=true", {"state": 1, "ttl_s": 1})
    assert r.json()["expires_at"]
    simulated.put(desired_path(drive), {"state": 2, "ttl_s": 1})
    wait_until(lambda: (lambda p: p["state"] == 0 and not p["claims"])(power(simulated, drive)), 60, "the end")
    row = next(a for a in simulated.json("/api/v1/audit?limit=1000")["items"] if a["action"] == "power.expire_desired")
    assert row["object"] == "/drives/" + drive["id"] and row["outcome"] == "ok"


@pytest.mark.parametrize(
    "body, pointer",
    [
        ({"expires_at": "2020-01-01T00:00:00Z"}, "/expires_at"),
        ({"expires_at": "9999-01-01T00:00:00Z"}, "/expires_at"),
        ({"expires_at": "soon"}, "/expires_at"),
        ({"expires_at": "2020-01-01T00:00:00Z", "ttl_s": 1}, "/expires_at"),
        ({"ttl_s": 0}, "/ttl_s"),
        ({"ttl_s": 31622401}, "/ttl_s"),
    ],
)
def test_an_end_is_ahead_and_not_too_far(simulated, drive, body, pointer):
    problem(simulated.put(desired_path(drive), {"state": 1, **body}), 400, pointer=pointer)
    change = {"drives": [drive["id"]], "desired": {"state": 1, **body}}
    problem(simulated.post("/api/v1/power-changes", change), 400, pointer="/desired" + pointer)
    assert simulated.get(desired_path(drive)).status_code == 404


def test_limit_chooses_the_fastest_state_that_fits(simulated, drive):
    r = simulated.put(desired_path(drive), {"limit_w": 15.5})
    assert r.json()["limit_w"] == 15.5
    assert "state" not in r.json()
    assert r.json()["observed_state"] == 1


def test_delete_restores_the_default(simulated, drive):
    simulated.put(desired_path(drive), {"state": 2})
    assert simulated.delete(desired_path(drive)).status_code == 204
    assert power(simulated, drive)["state"] == 0
    assert simulated.get(desired_path(drive)).status_code == 404


def test_delete_may_only_let_go(simulated, drive):
    simulated.put(desired_path(drive), {"state": 2})
    assert simulated.delete(desired_path(drive) + "?leave=true").status_code == 204
    assert power(simulated, drive)["state"] == 2


@pytest.mark.parametrize(
    "body, pointer",
    [
        ({"state": 31}, "/state"),
        ({"state": "1"}, "/state"),
        ({"state": 1.5}, "/state"),
        ({"state": -1}, "/state"),
        ({"state": True}, "/state"),
        ({}, "/state"),
        ({"state": 1, "limit_w": 10}, "/limit_w"),
        ({"limit_w": 2}, "/limit_w"),
        ({"limit_w": "10"}, "/limit_w"),
        ({"state": 1, "colour": "red"}, "/colour"),
        ({"state": None}, "/state"),
    ],
)
def test_bad_wishes_name_the_field(simulated, drive, body, pointer):
    r = simulated.put(desired_path(drive), body)
    assert r.status_code == 400
    assert r.json()["errors"][0]["pointer"] == pointer
    assert r.headers["Content-Type"] == "application/problem+json"


def test_if_match_guards_a_change(simulated, drive):
    r = simulated.put(desired_path(drive), {"state": 1})
    tag = r.headers["ETag"]
    stale = simulated.put(desired_path(drive), {"state": 2}, headers={"If-Match": '"c999"'})
    assert stale.status_code == 412
    assert power(simulated, drive)["state"] == 1
    assert simulated.put(desired_path(drive), {"state": 2}, headers={"If-Match": tag}).status_code == 200


def test_labels_and_filters(simulated, drive):
    r = simulated.patch(drive["href"], {"labels": {"rack": "r7", "slot": "3"}})
    assert r.json()["labels"] == {"rack": "r7", "slot": "3"}
    found = simulated.json("/api/v1/drives?label=rack:r7")["items"]
    assert [d["id"] for d in found] == [drive["id"]]
    assert simulated.json("/api/v1/drives?model=nothing")["items"] == []
    assert simulated.patch(drive["href"], {"labels": {}}).json()["labels"] == {}


@pytest.mark.parametrize("labels", [{"a": 1}, {"a": None}, [], "x", {str(i): "v" for i in range(17)}])
def test_bad_labels_name_the_field(simulated, drive, labels):
    r = simulated.patch(drive["href"], {"labels": labels})
    assert r.status_code == 400
    assert r.json()["errors"][0]["pointer"] == "/labels"


def test_desired_survives_a_restart(start):
    service = start("--simulate", "3")
    drive = service.drives()[1]
    assert service.put(desired_path(drive), {"state": 2}).status_code == 201
    service.stop()
    service.start()
    wait_until(lambda: power(service, drive)["state"] == 2)
    assert service.json(desired_path(drive))["state"] == 2


def test_unknown_drive_is_404(simulated):
    for path in ("", "/power", "/power/desired", "/health", "/thermal", "/energy"):
        assert simulated.get("/api/v1/drives/nothing" + path).status_code == 404
