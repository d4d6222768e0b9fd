"""The protocol: methods, media types, bodies, conditions, encodings, connections."""

import contextlib
import gzip
import json
import resource
import time

import pytest
from raw import Connection, ask, basic
from service import Service, anonymous, problem, routes, tried, wait_until

GETS = [r[1] for r in routes() if r[0] == "GET"]
CHANGES = [r for r in routes() if r[0] != "GET"]
V1 = [r for r in routes() if r[1].startswith("/api/v1")]
NOBODY = "00000000-0000-4000-8000-000000000000"
WORKLOAD = "/api/v1/workloads/w"
SHAPE = b'{"pattern": "read"}'


@pytest.fixture(scope="module")
def service():
    # Drives are read once: tags change by requests alone.
    still = ("--health", "10m", "--reconcile", "10m", "--rescan", "0")
    service = Service("--simulate", "4", "--max-connections", "1200", "--max-per-address", "0", *still).start()
    assert service.post("/api/v1/tokens", {"name": "t"}).status_code == 201
    wait_until(lambda: all(d["temperature_c"] is not None for d in service.drives()))
    yield service
    service.close()


@pytest.fixture
def connection(service):
    with Connection(service.url) as c:
        yield c


def put(service, body, **headers):
    """PUT of a workload with these bytes."""
    headers = {"Content-Type": "application/json", "Content-Length": len(body), **headers}
    return ask(service, "PUT", WORKLOAD, headers=headers, body=body)


def detail(response):
    assert response.headers["content-type"] == "application/problem+json"
    return json.loads(response.body)["detail"]


def real(service, path):
    """The path with ids that exist, where there are any."""
    if "{id}" not in path and "{name}" not in path:
        return path
    kind = path.split("/")[3]
    if kind == "workloads":
        return path.replace("{name}", "idle")
    if kind == "hosts":
        return path.replace("{id}", "local")
    items = service.json(f"/api/v1/{kind}")["items"]
    return path.replace("{id}", items[0]["id"] if items else NOBODY)


# -- methods and paths ------------------------------------------------------------------------------


@pytest.mark.parametrize("path", GETS)
def test_head_is_get_without_the_body(service, path):
    path = real(service, path)
    with Connection(service.url) as c:

        def agree():
            c.request("GET", path)
            got = c.response()
            c.request("HEAD", path)
            head = c.response("HEAD")
            assert head.status == got.status
            assert head.headers["content-type"] == got.headers["content-type"]
            return got.status != 200 or head.headers["content-length"] == got.headers["content-length"]

        wait_until(agree, what="two answers between which no figure became longer")
        c.request("GET", "/healthz")
        assert c.response().status == 200, "a body came with HEAD"


def test_head_of_a_stream_begins_none(service, connection):
    connection.request("HEAD", "/api/v1/events", headers={"Accept": "text/event-stream"})
    r = connection.response("HEAD")
    assert r.status == 200 and r.headers["content-type"] == "text/event-stream"
    connection.request("GET", "/healthz")
    assert connection.response().status == 200
    assert "drivewatt_http_streams 0\n" in service.get("/metrics").text


@pytest.mark.parametrize("path", sorted({r[1] for r in routes()}))
def test_other_methods_are_405(service, path):
    allowed = {r[0] for r in routes() if r[1] == path}
    allowed |= {"HEAD"} if "GET" in allowed else set()
    path = path.replace("{id}", NOBODY).replace("{name}", "nothing")
    for method in {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} - allowed:
        r = ask(service, method, path)
        assert r.status == 405, method
        assert set(r.headers["allow"].split(", ")) == allowed


def test_unknown_methods_are_501(service):
    assert ask(service, "BREW", "/api/v1/drives").status == 501


@pytest.mark.parametrize(
    "path", ["/nothing", "/api", "/api/v1", "/api/v1/drives/x/y/z", "/api/v1//drives", "/api/v1/../../etc/passwd"]
)
def test_unknown_paths_are_404(service, path):
    r = ask(service, "GET", path)
    assert r.status == 404
    assert r.headers["content-type"] == "application/problem+json"


def test_a_slash_at_the_end_does_not_matter(service):
    assert ask(service, "GET", "/api/v1/drives/").status == 200


def test_the_whole_url_may_be_the_target(service):
    assert ask(service, "GET", service.url + "/api/v1/drives").status == 200


def test_paths_are_decoded_part_by_part(service):
    assert ask(service, "GET", "/api/v1/%64rives").status == 200
    assert ask(service, "GET", "/api/v1%2Fdrives").status == 404
    assert ask(service, "GET", "/api/v1/workloads/seq%2Dread%2d128k").status == 200
    assert "a/b" not in ask(service, "GET", "/api/v1/workloads/a%2Fb").headers.get("location", "")


@pytest.mark.parametrize("path", ["/api/v1/drives/%", "/api/v1/drives/%zz", "/api/v1/drives/%00", "/api/v1/drives/%ff"])
def test_bad_escapes_are_400(service, path):
    assert ask(service, "GET", path).status == 400


@pytest.mark.parametrize("method, path, operation, role", V1, ids=[r[2] for r in V1])
def test_unknown_query_parameters_are_refused(service, method, path, operation, role):
    body = {} if method in ("POST", "PUT", "PATCH") else None
    for name in ("colour",) if operation in tried() else ("colour", "dry_run"):
        r = service.request(method, f"{real(service, path)}?{name}=1", json=body)
        problem(r, 400, parameter=name)


# -- media types ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "accept, status",
    [
        ("application/json", 200),
        ("*/*", 200),
        ("application/*", 200),
        ("text/html, application/json;q=0.1", 200),
        ("application/problem+json", 200),
        ("text/html", 406),
        ("application/json;q=0", 406),
        ("image/png, text/csv", 406),
    ],
)
def test_accept_is_heeded(service, accept, status):
    assert ask(service, "GET", "/api/v1/drives", headers={"Accept": accept}).status == status


def test_csv_where_there_is_csv(service):
    wait_until(lambda: service.get("/api/v1/hosts/local/energy").status_code == 200)
    path = "/api/v1/hosts/local/energy"
    assert ask(service, "GET", path, headers={"Accept": "text/csv"}).headers["content-type"].startswith("text/csv")
    both = {"Accept": "text/csv;q=0.5, application/json"}
    assert ask(service, "GET", path, headers=both).headers["content-type"] == "application/json"
    series = service.json("/api/v1/series?quantity=power")["items"][0]["href"] + "/samples"
    rows = ask(service, "GET", series, headers={"Accept": "text/csv"}).body.decode().splitlines()
    assert rows[0] == "at,power_simulated" and len(rows) > 1


@pytest.mark.parametrize("type_", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_bodies_that_are_no_json_are_415(service, type_):
    assert put(service, SHAPE, **{"Content-Type": type_}).status == 415


@pytest.mark.parametrize("type_", ["application/json", "application/json; charset=utf-8", "application/merge-patch+json"])
def test_bodies_that_are_json_are_taken(service, type_):
    assert put(service, SHAPE, **{"Content-Type": type_}).status in (200, 201)


# -- bodies -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'"x"',
        b"{",
        b'{"pattern": "read"} {}',
        b'{"pattern": "read",}',
        b'{"pattern": "read", "pattern": "write"}',
        b'{"pattern": "read", "jobs": NaN}',
        b'{"pattern": "read", "jobs": Infinity}',
        b'{"pattern": "read", "jobs": 1e999}',
        b'{"pattern": "read", "jobs": 99999999999999999999}',
        b'{"pattern": "read", "jobs": 01}',
        b'{"pattern": "read\xff"}',
        b'{"pattern": "\xed\xa0\x80"}',
        b'{"pattern": "read\\u0000"}',
        b'{"pattern": "read\\ud800"}',
        b'{"pattern": "re\nad"}',
        b"\xef\xbb\xbf" + SHAPE,
        SHAPE.decode().encode("utf-16"),
        b'{"pattern":' + b"[" * 2000 + b"]" * 2000 + b"}",
        b'{"pattern":' * 2000 + b"1" + b"}" * 2000,
        b"'" + SHAPE,
        b"{'pattern': 'read'}",
        SHAPE + b"\0",
    ],
)
def test_bad_json_is_400(service, body):
    r = put(service, body)
    assert r.status == 400 if len(body) < 8192 else r.status in (400, 413)
    assert detail(r)


@pytest.mark.parametrize(
    "body, pointer",
    [
        (b'{"pattern": "read", "jobs": 1.0}', "/jobs"),
        (b'{"pattern": "read", "jobs": true}', "/jobs"),
        (b'{"pattern": "read", "jobs": 9007199254740993}', "/jobs"),
        (b'{"pattern": "read", "jobs": -1}', "/jobs"),
        (b'{"pattern": ["read"]}', "/pattern"),
        (b'{"pattern": "read", "direct": 1}', "/direct"),
        (b'{"pattern": "read", "a/b~": 1}', "/a~1b~0"),
        (b'{"pattern": "read", "\\u00e9": 1}', "/é"),
    ],
)
def test_wrong_values_name_the_field(service, body, pointer):
    r = put(service, body)
    assert r.status == 400
    assert json.loads(r.body)["errors"][0]["pointer"] == pointer


def test_all_wrong_values_are_named_at_once(service):
    body = {"pattern": 1, "jobs": -1, "colour": "red", "direct": "yes"}
    errors = problem(service.put(WORKLOAD, body), 400)["errors"]
    assert [e["pointer"] for e in errors] == ["/pattern", "/jobs", "/colour", "/direct"]
    assert all(e["detail"] for e in errors)
    errors = problem(service.post("/api/v1/accounts", {"nam": "x"}), 400)["errors"]
    assert [e["pointer"] for e in errors] == ["/nam", "/name", "/password", "/role"]
    many = {f"unknown-{n}": n for n in range(200)}
    errors = problem(service.put(WORKLOAD, many), 400)["errors"]
    assert 5 < len(errors) < 100 and errors[0]["pointer"] == "/unknown-0"


def test_too_large_bodies_are_413(service, connection):
    body = b'{"pattern": "read"' + b" " * 8192 + b"}"
    assert put(service, body).status == 413
    connection.request("PUT", WORKLOAD, headers={"Content-Type": "application/json", "Content-Length": 10**12})
    assert connection.response().status == 413


def test_too_large_bodies_in_chunks_are_413(service, connection):
    headers = {"Content-Type": "application/json", "Transfer-Encoding": "chunked"}
    connection.request("PUT", WORKLOAD, headers=headers)
    connection.send(b"2001\r\n" + b" " * 0x2001 + b"\r\n0\r\n\r\n")
    assert connection.response().status == 413


@pytest.mark.parametrize("credentials", [True, False, basic("admin", "wrong-password")])
@pytest.mark.parametrize("size", [10_000, 300_000, 3_000_000, 20_000_000])
def test_the_answer_to_a_large_body_arrives(service, size, credentials):
    """The whole body is sent before the answer is read, as many clients do."""
    headers = {"Content-Type": "application/json", "Content-Length": size}
    for _ in range(3):
        with Connection(service.url) as c:
            c.request("PUT", WORKLOAD, headers=headers, body=b" " * size, credentials=credentials)
            assert c.response().status == (413 if credentials is not False else 401)
            assert c.closed()


def test_the_answer_to_a_large_body_in_chunks_arrives(service):
    r = service.put(WORKLOAD, data=(b" " * 1000 for _ in range(2000)), headers={"Content-Type": "application/json"})
    problem(r, 413)


def test_many_query_arguments_are_400(service):
    for count in (100, 300, 1000, 2500):
        problem(service.get("/api/v1/drives?" + "&".join(f"a{n}" for n in range(count))), 400)
    for count in (4000, 20000):
        r = ask(service, "GET", "/api/v1/drives?" + "&".join(f"a{n}" for n in range(count)))
        assert r.status in (414, 431)


def test_bodies_where_none_belongs_are_413(service):
    r = ask(service, "GET", "/api/v1/drives", headers={"Content-Type": "application/json", "Content-Length": 2}, body=b"{}")
    assert r.status == 413


def test_chunks_are_taken(service, connection):
    headers = {"Content-Type": "application/json", "Transfer-Encoding": "chunked"}
    connection.request("PUT", WORKLOAD, headers=headers)
    for part in (SHAPE[:5], SHAPE[5:]):
        connection.send(b"%x\r\n%s\r\n" % (len(part), part))
    connection.send(b"0\r\n\r\n")
    assert connection.response().status in (200, 201)


def test_without_credentials_a_large_body_is_not_read(service, connection):
    headers = {"Content-Type": "application/json", "Content-Length": 30000}
    connection.request("POST", "/api/v1/benchmarks", headers=headers, credentials=False)
    assert connection.response().status == 401


def test_wrong_credentials_are_told_before_a_large_body(service, connection):
    headers = {"Content-Type": "application/json", "Content-Length": 30000, "Authorization": basic("admin", "wrong-one")}
    connection.request("POST", "/api/v1/benchmarks", headers=headers, credentials=False)
    assert connection.response().status == 401


def test_expect_100(service, connection):
    headers = {"Content-Type": "application/json", "Content-Length": len(SHAPE), "Expect": "100-continue"}
    connection.request("PUT", WORKLOAD, headers=headers)
    assert b" 100 " in connection.read_until(b"\r\n\r\n")
    connection.send(SHAPE)
    assert connection.response().status in (200, 201)


@pytest.mark.parametrize(
    "framing",
    [
        "Content-Length: 19\r\nContent-Length: 5\r\n",
        "Content-Length: 19\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 99999999999999999999999\r\n",
    ],
)
def test_unclear_framing_ends_the_connection(connection, framing):
    connection.send(
        f"PUT {WORKLOAD} HTTP/1.1\r\nHost: t\r\nAuthorization: {basic()}\r\n"
        f"Content-Type: application/json\r\n{framing}\r\n".encode()
        + SHAPE
        + b"GET /healthz HTTP/1.1\r\nHost: t\r\n\r\n"
    )
    answer = connection.read_rest()
    assert answer == b"" or answer.split(b" ")[1] in (b"400", b"413")
    assert b" 200 " not in answer, "what stood behind the body was answered"


# -- conditions and caches --------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/api/v1/drives", "/api/v1/hosts", "/api/v1/accounts", "/api/v1/hosts/local"])
def test_not_modified(service, path):
    tag = service.get(path).headers["ETag"]
    r = service.get(path, headers={"If-None-Match": tag})
    assert r.status_code == 304 and r.content == b"" and r.headers["ETag"] == tag
    assert service.get(path, headers={"If-None-Match": f'"x", {tag}'}).status_code == 304
    assert service.get(path, headers={"If-None-Match": '"x"'}).status_code == 200


def test_a_change_ends_not_modified(service):
    drive = service.drives()[0]["href"]
    tags = {path: service.get(path).headers["ETag"] for path in (drive, "/api/v1/drives")}
    service.patch(drive, {"labels": {"changed": str(time.monotonic_ns())}})
    for path, tag in tags.items():
        assert service.get(path, headers={"If-None-Match": tag}).status_code == 200


def test_composite_tags_match_by_part(service):
    path = service.drives()[1]["href"]
    tag = service.get(path).headers["ETag"]
    config, observed = tag.strip('"').split(".")
    assert config[0] == "c" and observed[0] == "o"
    other = f'"{config}.o999999"'
    assert service.get(path, headers={"If-None-Match": other}).status_code == 200
    assert service.patch(path, {"labels": {}}, headers={"If-Match": other}).status_code == 200
    problem(service.patch(path, {"labels": {}}, headers={"If-Match": f'"c999.{observed}"'}), 412)
    problem(service.patch(path, {"labels": {}}, headers={"If-Match": f"W/{tag}"}), 412)
    assert service.patch(path, {"labels": {}}, headers={"If-Match": "*"}).status_code == 200


def test_gzip(service):
    plain = service.get("/api/v1/drives", headers={"Accept-Encoding": "identity"})
    packed = ask(service, "GET", "/api/v1/drives", headers={"Accept-Encoding": "gzip"})
    assert "Content-Encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert "accept-encoding" in packed.headers["vary"].lower()
    assert gzip.decompress(packed.body) == plain.content
    assert len(packed.body) < len(plain.content) / 2
    assert packed.headers["etag"] != plain.headers["ETag"]
    headers = {"Accept-Encoding": "gzip", "If-None-Match": packed.headers["etag"]}
    assert ask(service, "GET", "/api/v1/drives", headers=headers).status == 304
    refused = {"Accept-Encoding": "gzip;q=0"}
    assert "content-encoding" not in ask(service, "GET", "/api/v1/drives", headers=refused).headers


def test_a_cached_body_needs_credentials(service):
    assert service.get("/api/v1/drives").status_code == 200
    problem(service.get("/api/v1/drives", auth=anonymous), 401)


# -- request ids ------------------------------------------------------------------------------------


def test_request_ids_are_given_back(service):
    for path in ("/api/v1/drives", "/api/v1/system", "/api/v1/nothing"):
        r = service.get(path, headers={"X-Request-Id": "mine-1"})
        assert r.headers["X-Request-Id"] == "mine-1"
    for path in ("/api/v1/nothing", "/api/v1/drives/%zz", "/api/v1/drives?colour=1"):
        r = service.get(path)
        assert r.json()["request_id"] == r.headers["X-Request-Id"], "whoever refuses it"
    r = service.get("/api/v1/drives", auth=anonymous)
    assert r.json()["request_id"] == r.headers["X-Request-Id"]
    body = problem(service.put(WORKLOAD, {}, headers={"X-Request-Id": "mine-2"}), 400)
    assert body["request_id"] == "mine-2"


def test_request_ids_are_made(service):
    ids = {service.get("/api/v1/system").headers["X-Request-Id"] for _ in range(5)}
    assert len(ids) == 5
    for bad in ("a b", "x" * 200, "<script>", ""):
        r = service.get("/api/v1/system", headers={"X-Request-Id": bad})
        assert r.headers["X-Request-Id"] != bad


# -- connections ------------------------------------------------------------------------------------


def test_http_1_0(service):
    with Connection(service.url) as c:
        c.request("GET", "/healthz", version="HTTP/1.0")
        r = c.response()
        assert r.status == 200 and c.closed()
    with Connection(service.url) as c:
        c.request("GET", "/healthz", version="HTTP/1.0", headers={"Connection": "keep-alive"})
        assert c.response().status == 200
        c.request("GET", "/healthz", version="HTTP/1.0")
        assert c.response().status == 200


def test_a_host_is_required(connection):
    connection.send(b"GET /healthz HTTP/1.1\r\n\r\n")
    assert connection.response().status == 400


def test_pipelining(connection):
    targets = ["/api/v1/drives", "/healthz", "/api/v1/system", "/api/v1/nothing", "/api/v1/workloads"] * 10
    for target in targets:
        connection.request("GET", target)
    for target in targets:
        assert connection.response().status == (404 if target == "/api/v1/nothing" else 200)


def test_slow_senders_hold_up_nobody(service):
    whole = f"PUT {WORKLOAD} HTTP/1.1\r\nHost: t\r\nAuthorization: {basic()}\r\n"
    whole += f"Content-Type: application/json\r\nContent-Length: {len(SHAPE)}\r\n\r\n{SHAPE.decode()}"
    slow = [Connection(service.url) for _ in range(40)]
    try:
        for at, letter in enumerate(whole):
            for c in slow:
                c.send(letter)
            if at % 40 == 0:
                assert service.get("/api/v1/system", timeout=5).status_code == 200
        assert {c.response().status for c in slow} <= {200, 201}
    finally:
        for c in slow:
            c.socket.close()


def test_clients_that_leave_early_do_no_harm(service):
    for n in range(50):
        with Connection(service.url) as c:
            c.request("PUT", WORKLOAD, headers={"Content-Type": "application/json", "Content-Length": 100}, body=b"{" * n)
    for _ in range(50):
        with Connection(service.url) as c:
            c.request("GET", "/api/v1/drives")
    assert service.get("/api/v1/system").status_code == 200


@pytest.mark.parametrize(
    "text", [b"\r\n\r\n", b"GET\r\n\r\n", b"\x16\x03\x01\x02\x00", b"GET / HTTP/9.9\r\n\r\n", b"A" * 100000]
)
def test_what_is_no_http_is_refused(service, text):
    with Connection(service.url, 5) as c:
        try:
            c.send(text)
            c.socket.shutdown(1)
            answer = c.read_rest()
        except OSError:
            answer = b""
    assert answer == b"" or answer.split(b" ")[1][:1] in (b"4", b"5")
    assert service.get("/healthz").status_code == 200


def test_large_headers_are_refused(service):
    r = ask(service, "GET", "/api/v1/drives", headers={"X-Large": "x" * 40000})
    assert r.status in (400, 413, 431)


def test_a_thousand_idle_connections(service):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    idle = []
    try:
        for count in (127, 128, 129, 256, 512, 1000):
            while len(idle) < count:
                idle.append(Connection(service.url))
                idle[-1].request("GET", "/api/v1/drives")
                assert idle[-1].response().status == 200
            started = time.monotonic()
            for _ in range(5):
                assert ask(service, "GET", "/api/v1/drives").status == 200
            assert time.monotonic() - started < 5, f"slow with {count} connections"
        for c in idle[::100]:
            c.request("GET", "/healthz")
            assert c.response().status == 200
    finally:
        for c in idle:
            c.socket.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def served(service):
    with Connection(service.url) as c:
        try:
            c.request("GET", "/healthz")
            return c.response().status == 200
        except (AssertionError, OSError):
            return False


def test_connections_are_bounded(start):
    service = start("--simulate", "1", "--max-connections", "8", "--log-level", "warning")
    held = []
    for _ in range(8):
        held.append(Connection(service.url))
        held[-1].request("GET", "/api/v1/system")
        assert held[-1].response().status == 200
    with Connection(service.url) as c:
        assert c.closed(), "a ninth connection was served"
    held.pop().socket.close()
    wait_until(lambda: served(service), 10, "a place is free again")
    for c in held:
        c.socket.close()


def test_who_holds_connections_holds_up_nobody(start):
    service = start("--simulate", "1", "--max-connections", "64", "--max-per-address", "0")
    with contextlib.ExitStack() as held:
        known = held.enter_context(Connection(service.url))
        known.request("GET", "/api/v1/system")
        assert known.response().status == 200
        for _ in range(200):
            held.enter_context(Connection(service.url))
            half = held.enter_context(Connection(service.url))
            half.send("GET /api/v1/system HTTP/1.1\r\nHost: t\r\n")
        assert service.get("/api/v1/system").status_code == 200
        assert served(service)
        known.request("GET", "/api/v1/system")
        assert known.response().status == 200, "one that had shown its credentials was closed"


def test_connections_of_an_address_are_bounded(start):
    service = start("--simulate", "1", "--max-per-address", "4")
    with contextlib.ExitStack() as held:
        for _ in range(4):
            c = held.enter_context(Connection(service.url, source="127.0.0.9"))
            c.request("GET", "/api/v1/system")
            assert c.response().status == 200
        with Connection(service.url, source="127.0.0.9") as c:
            assert c.closed()
        assert served(service), "another address was refused"


def test_behind_a_trusted_proxy_the_client_counts(start):
    service = start("--simulate", "1", "--trusted-proxy", "127.0.0.1", "--login-failures", "2")
    away, here = {"X-Forwarded-For": "203.0.113.9, 192.0.2.1"}, {"X-Forwarded-For": "192.0.2.2"}
    wrong = ("admin", "wrong-password")
    statuses = [service.get("/api/v1/drives", auth=wrong, headers=away).status_code for _ in range(3)]
    assert statuses == [401, 401, 429]
    assert service.get("/api/v1/drives", auth=wrong, headers=here).status_code == 401
    service.put(WORKLOAD, json.loads(SHAPE), headers=here)
    assert service.json("/api/v1/audit?limit=1")["items"][0]["address"] == "192.0.2.2"


def test_idle_connections_are_closed(start):
    service = start("--simulate", "1", "--idle-timeout", "1")
    with Connection(service.url) as c:
        assert c.closed()
    with Connection(service.url) as c:
        c.request("GET", "/api/v1/system")
        assert c.response().status == 200
        assert c.closed()


def test_strangers_have_less_time(start):
    service = start("--simulate", "1", "--stranger-timeout", "1")
    with Connection(service.url) as known, Connection(service.url) as stranger:
        known.request("GET", "/api/v1/system")
        assert known.response().status == 200
        stranger.request("GET", "/healthz")
        assert stranger.response().status == 200
        assert stranger.closed()
        known.request("GET", "/api/v1/system")
        assert known.response().status == 200


def test_a_trickle_is_cut_off(start):
    service = start("--simulate", "1", "--idle-timeout", "1")
    with Connection(service.url) as c:
        began = time.monotonic()
        try:
            while time.monotonic() - began < 30:
                c.send(b"GET /healthz HTTP/1.1\r\nX: y\r\n"[:1])
                c.socket.settimeout(0.2)
                try:
                    if not c.socket.recv(1):
                        break
                except TimeoutError:
                    continue
        except OSError:
            pass
        assert time.monotonic() - began < 30, "a byte now and then held the connection"


def test_a_low_soft_limit_of_descriptors_limits_no_connections(start):
    service = start("--simulate", "1", prefix=("prlimit", "--nofile=128:4096"))
    with contextlib.ExitStack() as held:
        for n in range(200):
            c = held.enter_context(Connection(service.url, source=f"127.0.0.{1 + n % 4}"))
            c.request("GET", "/healthz")
            assert c.response().status == 200
