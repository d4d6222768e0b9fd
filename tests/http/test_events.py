"""What happened and who did it: the log, the stream, the trail."""

import json
import re
import sqlite3
import threading
import time

from datetime import datetime, timezone

import pytest
from raw import Connection, basic
from service import PASSWORD, Service, problem, wait_until


COPY_EVENT = "INSERT INTO event SELECT ?2, at_ms, type, object, actor, data FROM event WHERE id = ?1"


@pytest.fixture(scope="module")
def service():
    service = Service("--simulate", "2", "--heartbeat", "300ms", "--max-streams", "16", "--meter", "500ms").start()
    wait_until(lambda: len(service.drives()) == 2)
    yield service
    service.close()


class Stream:
    """A reader of /api/v1/events in a thread: blocks as dicts, comments counted."""

    def __init__(self, service, last=None, credentials=True, path="/api/v1/events"):
        headers = {"Accept": "text/event-stream"}
        if last is not None:
            headers["Last-Event-ID"] = str(last)
        self.connection = Connection(service.url, timeout_s=60)
        self.connection.request("GET", path, headers=headers, credentials=credentials)
        head = self.connection.read_until(b"\r\n\r\n").decode().lower()
        self.status = int(head.split()[1])
        self.head = head
        self.events, self.comments, self.ended = [], 0, threading.Event()
        if self.status == 200:
            threading.Thread(target=self.read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.socket.close()

    def read(self):
        text = b""
        try:
            while True:
                size = int(self.connection.read_until(b"\r\n"), 16)
                if size == 0:
                    break
                text += self.connection.read_bytes(size)
                self.connection.read_bytes(2)
                *blocks, text = text.split(b"\n\n")
                for block in blocks:
                    self.take(block.decode())
        except (AssertionError, OSError, ValueError):
            pass
        self.ended.set()

    def take(self, block):
        if block.startswith(":"):
            self.comments += 1
            return
        self.events.append(dict(line.split(": ", 1) for line in block.splitlines()))

    def wait(self, condition, what="an event"):
        return wait_until(lambda: [e for e in self.events if condition(e)], 15, what)


def log(service, after=0):
    """The whole log after an id."""
    items, cursor = [], str(after)
    while cursor is not None:
        page = service.json(f"/api/v1/events?limit=20&cursor={cursor}")
        items += page["items"]
        cursor = page["next"]
    return items


def open_streams(service):
    return int(re.search(r"^drivewatt_http_streams (\d+)", service.get("/metrics").text, re.M).group(1))


def change(service):
    """One change; returns its event."""
    before = log(service)[-1]["id"]
    drive = service.drives()[0]
    state = 2 if drive["power"]["effective_state"] == 1 else 1
    assert service.put(drive["href"] + "/power/desired", {"state": state}).status_code in (200, 201)
    return next(e for e in log(service, before) if e["type"] == "power.desired_changed")


# -- the reader's rights ----------------------------------------------------------------------------


@pytest.fixture
def reader(service):
    """An account of an operator and a token of it."""
    name = f"reader-{time.monotonic_ns()}"
    body = {"name": name, "password": PASSWORD, "role": "Operator"}
    account = service.post("/api/v1/accounts", body).json()
    body = {"name": "t", "expires_at": in_s(1000)}
    token = service.post("/api/v1/tokens", body, auth=(name, PASSWORD)).json()
    yield {"name": name, "account": account["href"], "token": token["href"], "secret": token["token"]}
    service.delete(account["href"])


def in_s(seconds):
    """The time in so many seconds."""
    return datetime.fromtimestamp(time.time() + seconds, timezone.utc).isoformat()


RIGHTS = {
    "disabled": ("both", lambda s, r: s.patch(r["account"], {"enabled": False})),
    "deleted": ("both", lambda s, r: s.delete(r["account"])),
    "lower role": ("both", lambda s, r: s.patch(r["account"], {"role": "ReadOnly"})),
    "other password": ("password", lambda s, r: s.patch(r["account"], {"password": "another-password"})),
    "no token": ("token", lambda s, r: s.delete(r["token"])),
    "nothing": ("", lambda s, r: s.post("/api/v1/tokens", {"name": "other"})),
}


@pytest.mark.parametrize("how", RIGHTS)
def test_a_stream_ends_with_its_readers_rights(service, reader, how):
    ends, do = RIGHTS[how]
    password, token = basic(reader["name"]), "Bearer " + reader["secret"]
    with (
        Stream(service) as own,
        Stream(service, credentials=password) as by_password,
        Stream(service, credentials=token) as by_token,
    ):
        assert own.status == by_password.status == by_token.status == 200
        assert do(service, reader).status_code < 300
        if ends in ("both", "password"):
            assert by_password.ended.wait(20)
        if ends in ("both", "token"):
            assert by_token.ended.wait(20)
        last = log(service)[-1]["id"]
        own.wait(lambda e: e["id"] == last)
        goes_on = [own] + ([by_password] if ends in ("", "token") else [])
        goes_on += [by_token] if ends in ("", "password") else []
        heard = [s.comments for s in goes_on]
        wait_until(lambda: all(s.comments > h + 2 for s, h in zip(goes_on, heard)), 20, "heartbeats")
        assert not any(s.ended.is_set() for s in goes_on)
    wait_until(lambda: open_streams(service) == 0)


def test_a_stream_ends_with_its_token(service, reader):
    body = {"name": "short", "expires_at": in_s(2)}
    token = service.post("/api/v1/tokens", body, auth=(reader["name"], PASSWORD)).json()["token"]
    with Stream(service, credentials="Bearer " + token) as stream:
        assert stream.status == 200
        assert stream.ended.wait(20)


# -- the log ----------------------------------------------------------------------------------------


def test_the_log_is_in_order(service):
    change(service)
    items = log(service)
    ids = [int(e["id"]) for e in items]
    assert ids == sorted(set(ids))
    assert {"drive.added", "account.changed", "power.desired_changed"} <= {e["type"] for e in items}
    added = next(e for e in items if e["type"] == "drive.added")
    assert added["actor"] == "system"
    assert service.get(added["object"]).status_code == 200
    assert service.json(added["href"])["items"] == [added]


def test_pages_do_not_overlap(service):
    change(service)
    first = service.json("/api/v1/events?limit=2")
    second = service.json(f"/api/v1/events?limit=2&cursor={first['next']}")
    assert len(first["items"]) == 2 and second["items"]
    assert int(first["items"][1]["id"]) < int(second["items"][0]["id"])


@pytest.mark.parametrize("query", ["cursor=x", "cursor=-1", "limit=0", "limit=1001", "limit=x"])
def test_bad_pages_name_the_parameter(service, query):
    problem(service.get("/api/v1/events?" + query), 400, parameter=query.split("=")[0])


# -- the stream -------------------------------------------------------------------------------------


def test_the_stream_shows_a_change(service):
    with Stream(service) as stream:
        assert stream.status == 200
        assert "content-type: text/event-stream" in stream.head
        assert "cache-control: no-" in stream.head
        row = change(service)
        got = stream.wait(lambda e: e.get("id") == row["id"])[0]
        assert got["event"] == "power.desired_changed"
        assert json.loads(got["data"]) == row


def test_a_reader_gets_what_it_missed_and_then_the_rest(service):
    first = change(service)
    missed = [change(service) for _ in range(3)]
    with Stream(service, last=first["id"]) as stream:
        stream.wait(lambda e: e.get("id") == missed[-1]["id"])
        later = change(service)
        stream.wait(lambda e: e.get("id") == later["id"])
        ids = [int(e["id"]) for e in stream.events]
        assert ids == sorted(set(ids)), "doubled or out of order"
        assert ids == [int(e["id"]) for e in log(service, first["id"]) if int(e["id"]) <= ids[-1]]


def test_what_is_gone_is_told_as_a_gap(start):
    service = start("--simulate", "1")
    change(service)
    last = int(log(service)[-1]["id"])
    service.stop()
    with sqlite3.connect(service.data_dir + "/control.db") as store:
        store.executemany(COPY_EVENT, [(last, last + n) for n in range(1, 1500)])
    store.close()
    service.start()
    with Stream(service, last=last) as stream:
        gap = stream.wait(lambda e: e["event"] == "gap")[0]
        data = json.loads(gap["data"])
        assert data["after"] == str(last) and int(data["next"]) > last + 1
        first = stream.wait(lambda e: "id" in e)[0]
        assert first["id"] == data["next"]


def test_an_id_of_the_future_is_answered(service):
    with Stream(service, last=10**15) as stream:
        assert stream.status == 200
        stream.wait(lambda e: e["event"] == "gap", "a gap")
        row = change(service)
        stream.wait(lambda e: e.get("id") == row["id"])


@pytest.mark.parametrize("last", ["x", "-1", "1.5", "99999999999999999999"])
def test_ids_that_are_none_are_refused(service, last):
    with Stream(service, last=last) as stream:
        assert stream.status == 400


def test_samples_come_to_those_who_ask(service):
    with Stream(service, path="/api/v1/events?samples=true") as live, Stream(service) as plain:
        assert live.status == 200
        row = change(service)
        for stream in (live, plain):
            got = stream.wait(lambda e: e.get("id") == row["id"])[0]
            assert json.loads(got["data"]) == row
        live.wait(lambda e: e["event"] == "samples")
        wait_until(lambda: len(samples_of(live)) >= 3, 30, "three samples")
        shown = samples_of(live)
        assert all("id" not in e for e in live.events if e["event"] == "samples")
        assert [e for e in plain.events if e["event"] == "samples"] == []
    for id_ in {s["series"] for s in shown}:
        series = service.json(f"/api/v1/series/{id_}")
        mine = [s for s in shown if s["series"] == id_]
        for key in ("host", "object", "quantity", "unit", "quality"):
            assert {s[key] for s in mine} == {series[key]}
        times = [s["at"] for s in mine]
        assert times == sorted(set(times))
        kept = {s["at"]: s["value"] for s in service.json(series["href"] + "/samples?from=-1h")["items"]}
        assert {s["at"]: s["value"] for s in mine}.items() <= kept.items()


def samples_of(stream):
    return [s for e in list(stream.events) if e["event"] == "samples" for s in json.loads(e["data"])]


def test_samples_after_a_replay(service):
    first = change(service)
    missed = change(service)
    with Stream(service, last=first["id"], path="/api/v1/events?samples=true") as live:
        live.wait(lambda e: e.get("id") == missed["id"])
        live.wait(lambda e: e["event"] == "samples")
        ids = [int(e["id"]) for e in live.events if "id" in e]
        assert ids == sorted(set(ids)) and ids[0] == int(first["id"]) + 1


@pytest.mark.parametrize("query", ["samples=x", "types=y"])
def test_bad_wishes_for_a_stream_are_refused(service, query):
    with Stream(service, path="/api/v1/events?" + query) as stream:
        assert stream.status == 400
    problem(service.get("/api/v1/events?samples=true"), 400)


def test_silence_has_a_heartbeat(service):
    with Stream(service) as stream:
        wait_until(lambda: stream.comments >= 4, 10, "four comments")


def test_streams_are_bounded(service):
    wait_until(lambda: open_streams(service) == 0, 15, "heartbeats notice readers that left")
    streams = [Stream(service) for _ in range(4)]
    try:
        assert [s.status for s in streams] == [200] * 4
        with Stream(service) as fifth:
            assert fifth.status == 503
            assert "retry-after:" in fifth.head
        r = service.get("/api/v1/events", headers={"Accept": "text/event-stream"})
        assert "the account has 4 event streams" in problem(r, 503)["detail"]
        body = {"name": "another", "password": PASSWORD, "role": "ReadOnly"}
        other = service.post("/api/v1/accounts", body).json()
        with Stream(service, credentials=basic("another")) as theirs:
            assert theirs.status == 200
        service.delete(other["href"])
        assert service.get("/api/v1/system").status_code == 200
    finally:
        for s in streams:
            s.connection.socket.close()
    wait_until(lambda: open_streams(service) == 0, 15, "heartbeats notice readers that left")


def test_streams_are_shut_at_stop(start):
    service = start("--simulate", "1")
    streams = [Stream(service) for _ in range(5)]
    began = time.monotonic()
    service.terminate()
    for s in streams:
        assert s.ended.wait(10)
    service.stop()
    assert time.monotonic() - began < 15
    for s in streams:
        s.connection.socket.close()


def test_ids_go_on_after_a_restart(start):
    service = start("--simulate", "1")
    before = log(service)
    service.stop()
    service.start()
    after = log(service)
    assert after[: len(before)] == before
    with Stream(service, last=before[-1]["id"]) as stream:
        row = change(service)
        stream.wait(lambda e: e.get("id") == row["id"])


# -- the trail --------------------------------------------------------------------------------------


def trail(service, request_id):
    return [r for r in service.json("/api/v1/audit?limit=50")["items"] if r["request_id"] == request_id]


def test_a_change_of_power_has_intent_and_outcome(service):
    drive = service.drives()[1]["href"]
    r = service.put(drive + "/power/desired", {"state": 1}, headers={"X-Request-Id": "power-1"})
    assert r.status_code == 201
    rows = wait_until(lambda: len(trail(service, "power-1")) == 2 and trail(service, "power-1"))
    assert [row["outcome"] for row in rows] == ["ok", "intent"]
    for row in rows:
        assert row["actor"] == "admin" and row["address"] == "127.0.0.1"
        assert row["object"] == drive.removeprefix("/api/v1")
        assert row["action"] == "power.set_desired"
    r = service.delete(drive + "/power/desired", headers={"X-Request-Id": "power-2"})
    rows = wait_until(lambda: len(trail(service, "power-2")) == 2 and trail(service, "power-2"))
    assert rows[0]["action"] == "power.clear_desired"


CHANGES = [
    ("PUT", "/api/v1/workloads/trail", {"pattern": "read"}, "workload.put"),
    ("DELETE", "/api/v1/workloads/trail", None, "workload.delete"),
    ("PATCH", "/api/v1/hosts/local", {"labels": {"a": "b"}}, "host.update"),
    ("PUT", "/api/v1/hosts/local/baseline", {"no_drives": {"w": 400}}, "host.set_baseline"),
    ("POST", "/api/v1/tokens", {"name": "trail"}, "token.create"),
    ("POST", "/api/v1/hosts", {"name": "trail"}, "host.create"),
    ("POST", "/api/v1/accounts", {"name": "trail", "password": "passpass1", "role": "ReadOnly"}, "account.create"),
]


@pytest.mark.parametrize("method, path, body, action", CHANGES, ids=[c[3] for c in CHANGES])
def test_every_change_is_in_the_trail(service, method, path, body, action):
    id_ = action.replace(".", "-").replace("_", "-")
    r = service.request(method, path, json=body, headers={"X-Request-Id": id_})
    assert r.status_code < 300, r.text
    rows = trail(service, id_)
    assert [row["action"] for row in rows] == [action]
    assert rows[0]["outcome"] == "ok" and rows[0]["actor"] == "admin"


def test_labels_of_a_drive_are_in_the_trail(service):
    drive = service.drives()[0]["href"]
    service.patch(drive, {"labels": {"rack": "r1"}}, headers={"X-Request-Id": "labels-1"})
    assert len(trail(service, "labels-1")) == 1


def test_refused_changes_leave_nothing_behind(service):
    drive = service.drives()[0]["href"]
    service.put(drive + "/power/desired", {"state": 31}, headers={"X-Request-Id": "refused-1"})
    assert trail(service, "refused-1") == []


def test_the_trail_is_paged_from_the_newest(service):
    first = service.json("/api/v1/audit?limit=3")
    second = service.json(f"/api/v1/audit?limit=3&cursor={first['next']}")
    ids = [int(r["id"]) for r in first["items"] + second["items"]]
    assert ids == sorted(set(ids), reverse=True) and len(ids) == 6
    one = first["items"][1]
    assert service.json(one["href"])["items"] == [one]
