"""Power limits that BMCs hold their hosts to: set, lifted, refused, and BMCs that lie."""

import concurrent.futures
import uuid

import pytest
from fakebmc import FakeBmc
from service import Service, bearer, problem, wait_until

RANGE = (300, 900)


@pytest.fixture(scope="module")
def service():
    service = Service("--meter", "100ms").start()
    yield service
    service.close()


@pytest.fixture
def hosts(service):
    """Makes a BMC and its host, which are gone after the test."""
    made = []

    def make(**options):
        bmc = FakeBmc(**{"limit_range": RANGE, "plain": True, **options})
        bmc.__enter__()
        settings = {"url": bmc.url, "username": "root", "password": "calvin", "allow_plaintext": True}
        host = service.post("/api/v1/hosts", {"name": f"h-{uuid.uuid4()}", "bmc": settings}).json()
        made.append((host, bmc))
        wait_until(lambda: service.json(host["href"] + "/power")["at"], 30, "a reading")
        return host["href"], bmc

    yield make
    for host, bmc in made:
        service.delete(host["href"])
        bmc.__exit__()


def set_limit(service, href, limit_w, **kwargs):
    return service.patch(href + "/power", {"limit_w": limit_w}, **kwargs)


def events(service, href):
    """What was told of the host's limit, in order."""
    items = service.json("/api/v1/events?limit=1000")["items"]
    return [(e["type"], e["data"]) for e in items if e["object"] == href and "limit" in e["type"]]


def audit(service, href):
    """How changes of the host's limit went, in order."""
    items = service.json("/api/v1/audit?limit=1000")["items"]
    own = [a for a in items if a["object"] == href[len("/api/v1"):] and a["action"] == "host.set_limit"]
    return [(a["actor"], a["outcome"]) for a in reversed(own)]


@pytest.mark.parametrize("shape", ["environment", "control", "power"])
def test_a_limit_is_set_and_lifted(service, hosts, shape):
    href, bmc = hosts(shape=shape)
    r = set_limit(service, href, 700)
    assert r.status_code == 200, r.text
    assert r.json()["limit_w"] == 700 and r.json()["recorded"] is True
    assert bmc.limit_w == 700 and len(bmc.limits.changes) == 1
    assert set_limit(service, href, 700).status_code == 200
    assert len(bmc.limits.changes) == 1, "what holds already is not asked for"
    assert service.json(href + "/power")["limit_w"] == 700
    assert set_limit(service, href, None).json()["limit_w"] is None
    assert bmc.limit_w is None or bmc.limit_mode == "Disabled"
    assert audit(service, href) == [("admin", "intent"), ("admin", "ok")] * 3
    assert events(service, href)[0] == ("host.limit_changed", {"wished_w": 700, "limit_w": 700})
    assert bmc.most_at_once == 1


def test_a_trial_asks_no_bmc(service, hosts):
    href, bmc = hosts(shape="power")
    before = service.json(href + "/power")["limit_w"]
    r = service.patch(href + "/power?dry_run=true", {"limit_w": 700})
    assert r.status_code == 200 and r.headers["Dry-Run"] == "true" and r.json()["recorded"] is False
    assert not bmc.limits.changes and audit(service, href) == [] and events(service, href) == []
    assert service.json(href + "/power")["limit_w"] == before
    problem(service.patch(href + "/power?dry_run=true", {"limit_w": -1}), 400, pointer="/limit_w")


def test_readings_go_on_with_the_new_limit(service, hosts):
    href, bmc = hosts(shape="power", watts=400)
    assert set_limit(service, href, 650).status_code == 200
    bmc.watts = 401
    p = wait_until(lambda: (lambda p: p if p["power_w"] == 401 else None)(service.json(href + "/power")))
    assert p["limit_w"] == 650


@pytest.mark.parametrize("vendor, low, high, limit", [("dell10", 350, 1400, 500), ("xcc", 260, 750, 500)])
def test_vendors(service, hosts, vendor, low, high, limit):
    href, bmc = hosts(vendor=vendor)

    def bounds():
        p = service.json(href + "/power")
        return p["limit_min_w"], p["limit_max_w"]

    wait_until(lambda: bounds() == (low, high), 30, "what comes after the watts")
    r = set_limit(service, href, limit)
    assert r.status_code == 200, r.text
    assert r.json()["limit_w"] == limit and bmc.limits.changes


@pytest.mark.parametrize("limits, tag", [
    ("etag_weak", "strong"), ("etag_needed", "as it is"), ("etag_body", "of the body"),
    ("etag_stale", "the fresh one"), ("etag_any", "*"), ("late", None), ("drop", None), ("async", None),
    ("task", None)])
def test_what_bmcs_want_is_found(service, hosts, limits, tag):
    href, bmc = hosts(limits=limits)
    r = set_limit(service, href, 700)
    assert r.status_code == 200, r.text
    assert r.json()["limit_w"] == 700 and bmc.limit_w == 700
    if tag:
        assert bmc.limits.tags[-1], "with a tag"
    if limits == "etag_weak":
        assert bmc.limits.tags[0].startswith('W/"') and bmc.limits.tags[-1] == bmc.limits.tags[0][2:]
    if limits in ("late", "async", "task"):
        assert len(bmc.limits.changes) == 1, "asked for once"


@pytest.mark.parametrize("limits, status, told", [
    ("refuse", 502, "PropertyValueNotInList"), ("gives_up", 502, "gave it up"), ("complains", 502, "PropertyNotWritable"),
    ("busy", 503, "busy"), ("read_only", 502, "OperationNotAllowed")])
def test_a_refusal_is_told(service, hosts, limits, status, told):
    href, bmc = hosts(limits=limits)
    body = problem(set_limit(service, href, 700), status)
    assert told in body["detail"], body
    assert bmc.limit_w is None
    assert audit(service, href)[0] == ("admin", "intent") and audit(service, href)[1][1] != "ok"
    (kind, data), = events(service, href)
    assert kind == "host.limit_refused" and data["wished_w"] == 700 and told in data["reason"]
    bmc.limits.mode = "ok"
    assert set_limit(service, href, 700).json()["limit_w"] == 700


def test_liars_are_found_out(service, hosts):
    liars = [hosts(limits="ignore", limit_w=800), hosts(limits="clamp"), hosts(limits="ignore")]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        answers = list(pool.map(lambda liar: set_limit(service, liar[0], 700), liars))
    told = [problem(r, 502)["detail"] for r in answers]
    assert "its limit is 800 W" in told[0] and "its limit is 600 W" in told[1] and "no limit" in told[2]
    assert [service.json(href + "/power")["limit_w"] for href, _ in liars] == [800, 600, None]


def test_one_that_is_never_done_can_be_left(service, hosts):
    href, bmc = hosts(limits="forever")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        waits = pool.submit(set_limit, service, href, 700)
        wait_until(lambda: bmc.limits.looks > 1, 30, "its monitor is looked at")
        problem(set_limit(service, href, 600), 503)
        before = len(bmc.requests)
        bmc.watts = 417
        wait_until(lambda: service.json(href + "/power")["power_w"] == 417, 30, "readings go on meanwhile")
        assert len(bmc.requests) > before
        service.patch(href, {"bmc": None})
        problem(waits.result(30), 409)
    assert len(bmc.limits.changes) == 1


def test_a_range_is_checked_here(service, hosts):
    href, bmc = hosts(vendor="openbmc")
    p = service.json(href + "/power")
    assert (p["limit_w"], p["limit_min_w"], p["limit_max_w"]) == (None, 2700, 3584)
    for limit in (990, 3585):
        body = problem(set_limit(service, href, limit), 400, "/limit_w")
        assert "2700" in body["errors"][0]["detail"] or "3584" in body["errors"][0]["detail"]
    assert bmc.limits.changes == [] and audit(service, href) == []
    assert set_limit(service, href, 3000).json()["limit_w"] == 3000
    assert bmc.limits.changes == [{"PowerLimitWatts": {"SetPoint": 3000, "ControlMode": "Automatic"}}]


@pytest.mark.parametrize("body, pointer", [
    ({}, "/limit_w"), ({"limit_w": 0}, "/limit_w"), ({"limit_w": -5}, "/limit_w"), ({"limit_w": 500.5}, "/limit_w"),
    ({"limit_w": "500"}, "/limit_w"), ({"limit_w": 1e7}, "/limit_w"), ({"limit_w": 500, "place": "x"}, "/place")])
def test_bad_bodies_name_the_field(service, body, pointer):
    problem(service.patch("/api/v1/hosts/local/power", body), 400, pointer)


def test_conditions_and_roles(service, hosts):
    href, bmc = hosts()
    tag = service.get(href + "/power").headers["ETag"]
    service.patch(href, {"labels": {"a": "b"}})
    problem(set_limit(service, href, 700, headers={"If-Match": tag}), 412)
    made = service.post("/api/v1/accounts", {"name": "viewer", "password": "passpass1", "role": "ReadOnly"})
    token = bearer(service.post("/api/v1/tokens", {"name": "t"}, auth=("viewer", "passpass1")).json()["token"])
    problem(set_limit(service, href, 700, auth=token), 403)
    service.delete(made.json()["href"])
    assert bmc.limits.changes == []
    tag = service.get(href + "/power").headers["ETag"]
    assert set_limit(service, href, 700, headers={"If-Match": tag}).status_code == 200


def test_where_there_is_nothing_to_set(service, hosts):
    problem(service.patch("/api/v1/hosts/local/power", {"limit_w": 500}), 422)
    problem(service.patch(f"/api/v1/hosts/{uuid.uuid4()}/power", {"limit_w": 500}), 404)
    href, _ = hosts(shape="supplies")
    problem(set_limit(service, href, 500), 422)


def test_a_bmc_that_is_away(service, hosts):
    href, bmc = hosts()
    bmc.die()
    body = problem(set_limit(service, href, 500), 503)
    assert "does not answer" in body["detail"] or "bmc_unreachable" in body["detail"]


def test_a_session_that_died_is_opened_anew(service, hosts):
    href, bmc = hosts()
    bmc.sessions.expire(401)
    assert set_limit(service, href, 555).status_code == 200
    assert bmc.limit_w == 555


def test_an_observer_sets_nothing(start):
    with FakeBmc(limit_range=RANGE, plain=True) as bmc:
        service = start("--observe-only", "--meter", "100ms")
        settings = {"url": bmc.url, "username": "root", "password": "calvin", "allow_plaintext": True}
        href = service.post("/api/v1/hosts", {"name": "seen", "bmc": settings}).json()["href"]
        problem(set_limit(service, href, 500), 403)
        assert bmc.limits.changes == []
