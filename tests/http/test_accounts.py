"""Who may do what: roles, passwords, tokens, and that no secret gets out."""

import json
import time
from datetime import datetime, timedelta, timezone

import pytest
from raw import Connection, ask, basic
from service import PASSWORD, Service, anonymous, bearer, problem, routes, wait_until

ROLES = ("ReadOnly", "Operator", "Administrator")
ROUTES = [r for r in routes() if r[3] != "public"]
NOBODY = "00000000-0000-4000-8000-000000000000"


@pytest.fixture(scope="module")
def service():
    service = Service("--simulate", "1").start()
    yield service
    service.close()


@pytest.fixture(scope="module")
def people(service):
    """A token of an account of each role."""
    return {role: token_of(service, make_account(service, role.lower(), role)) for role in ROLES}


def make_account(service, name, role, password=PASSWORD):
    r = service.post("/api/v1/accounts", {"name": name, "password": password, "role": role})
    assert r.status_code == 201, r.text
    return {**r.json(), "auth": (name, password)}


def token_of(service, account, **body):
    r = service.post("/api/v1/tokens", {"name": "t", **body}, auth=account["auth"])
    assert r.status_code == 201, r.text
    return bearer(r.json()["token"])


@pytest.fixture
def account(service):
    """A fresh operator."""
    made = make_account(service, f"op-{time.monotonic_ns()}", "Operator")
    yield made
    service.delete(made["href"])


def in_ms(ms):
    """The time in so many milliseconds."""
    at = datetime.now(timezone.utc) + timedelta(milliseconds=ms)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


# -- roles ------------------------------------------------------------------------------------------


def call(service, method, path, **kwargs):
    """With an id that nothing has and no body: harmless for whoever may."""
    path = path.replace("{id}", NOBODY).replace("{name}", "nothing")
    return service.request(method, path, **kwargs)


@pytest.mark.parametrize("method, path, operation, role", ROUTES, ids=[r[2] for r in ROUTES])
def test_every_route_keeps_its_role(service, people, method, path, operation, role):
    r = call(service, method, path, auth=anonymous)
    problem(r, 401)
    assert "Basic" in r.headers["WWW-Authenticate"] and "Bearer" in r.headers["WWW-Authenticate"]
    for have in ROLES:
        r = call(service, method, path, auth=people[have])
        if ROLES.index(have) < ROLES.index(role):
            problem(r, 403)
        else:
            assert r.status_code not in (401, 403), r.text


@pytest.mark.parametrize("path", [r[1] for r in routes() if r[3] == "public"])
def test_public_routes_need_no_credentials(service, path):
    assert service.get(path, auth=anonymous).status_code == 200


def test_unknown_paths_are_404_for_everybody(service):
    assert service.get("/api/v1/nothing", auth=anonymous).status_code == 404
    assert service.get("/api/v2/drives", auth=anonymous).status_code == 404


# -- credentials ------------------------------------------------------------------------------------


def test_wrong_password_and_unknown_name_look_the_same(service):
    wrong = service.get("/api/v1/drives", auth=("admin", "not-the-password"))
    unknown = service.get("/api/v1/drives", auth=("nobody-at-all", "not-the-password"))
    assert wrong.status_code == unknown.status_code == 401
    assert {**wrong.json(), "request_id": None} == {**unknown.json(), "request_id": None}
    drop = ("Date", "X-Request-Id")
    assert {k: v for k, v in wrong.headers.items() if k not in drop} == {
        k: v for k, v in unknown.headers.items() if k not in drop
    }


@pytest.mark.parametrize(
    "value",
    [
        "",
        "Basic",
        "Basic ",
        "Basic !!!!",
        "Basic YWRtaW4=",
        "Basic YWRtaW4AOmEtZ29vZC1wYXNzd29yZA==",
        "Bearer",
        "Bearer ",
        "Bearer nonsense",
        "Bearer " + "x" * 5000,
        "Digest username=admin",
        "basic" + basic()[5:] + " trailing",
    ],
)
def test_malformed_credentials_are_401(service, value):
    r = ask(service, "GET", "/api/v1/drives", headers={"Authorization": value}, credentials=False)
    assert r.status == 401, r.body


def test_scheme_is_read_in_any_case(service):
    value = "bAsIc" + basic()[5:]
    r = ask(service, "GET", "/api/v1/drives", headers={"Authorization": value}, credentials=False)
    assert r.status == 200


def test_many_wrong_passwords_hold_up_their_sender_alone(start):
    service = start("--simulate", "1", "--login-failures", "3")
    made = make_account(service, "somebody", "Operator")
    token = token_of(service, make_account(service, "else", "Operator"))
    statuses = [service.get("/api/v1/drives", auth=("admin", f"wrong-{n}")).status_code for n in range(6)]
    assert statuses == [401, 401, 401, 429, 429, 429]
    r = service.get("/api/v1/drives", auth=(made["name"], PASSWORD + "x"))
    problem(r, 429)
    assert 1 <= int(r.headers["Retry-After"]) <= 7
    # What is known already, and what is no password, is not asked to wait.
    assert service.get("/api/v1/drives", auth=token).status_code == 200
    assert service.get("/api/v1/drives").status_code == 200
    with Connection(service.url, source="127.0.0.2") as c:
        c.request("GET", "/api/v1/drives", credentials=basic("somebody"))
        assert c.response().status == 200, "another address is held up"
    assert "drivewatt_auth_throttled_total 4\n" in service.get("/metrics").text
    wait_until(lambda: service.get("/api/v1/drives", auth=made["auth"]).status_code == 200, 30)


def test_passwords_wait_in_a_queue_of_their_own(start):
    """While many are checked, tokens that nobody has seen yet are let in."""
    service = start("--simulate", "1", "--hashers", "1", "--hash-queue", "4", "--login-failures", "0")
    made = make_account(service, "somebody", "Operator")
    tokens = [token_of(service, made) for _ in range(5)]
    wrong = [Connection(service.url) for _ in range(30)]
    try:
        for n, c in enumerate(wrong):
            c.request("GET", "/api/v1/drives", credentials=basic("admin", f"wrong-{n}"))
        for token in tokens:
            assert service.get("/api/v1/system", auth=token).status_code == 200
        answers = [c.response() for c in wrong]
        assert {r.status for r in answers} == {401, 503}
        assert all(r.headers["retry-after"] == "1" for r in answers if r.status == 503)
    finally:
        for c in wrong:
            c.socket.close()


def test_one_account_leaves_places_for_the_passwords_of_others(start):
    """Its own password changed by a token costs two hashes each time."""
    service = start("--simulate", "1", "--hashers", "1", "--hash-queue", "4", "--login-failures", "0")
    eager, other = (make_account(service, name, "Operator") for name in ("eager", "other"))
    sign = "Bearer " + service.post("/api/v1/tokens", {"name": "t"}, auth=eager["auth"]).json()["token"]
    body = json.dumps({"password": PASSWORD + "y", "current_password": "wrong"}).encode()
    headers = {"Authorization": sign, "Content-Type": "application/json", "Content-Length": len(body)}
    sent = [Connection(service.url) for _ in range(30)]
    try:
        for c in sent:
            c.request("PATCH", eager["href"], headers, body, credentials=False)
        assert service.get("/api/v1/system", auth=other["auth"]).status_code == 200
        answers = [c.response() for c in sent]
        assert {r.status for r in answers} == {403, 503}
        assert all(r.headers["retry-after"] == "1" for r in answers if r.status == 503)
    finally:
        for c in sent:
            c.socket.close()


# -- accounts ---------------------------------------------------------------------------------------


def test_life_of_an_account(service):
    made = make_account(service, "life", "ReadOnly")
    got = service.get(made["href"])
    assert got.json()["name"] == "life" and got.json()["enabled"] is True
    assert "life" in [a["name"] for a in service.json("/api/v1/accounts")["items"]]
    assert service.get("/api/v1/drives", auth=made["auth"]).status_code == 200
    tag = got.headers["ETag"]
    r = service.patch(made["href"], {"role": "Operator"}, headers={"If-Match": tag})
    assert r.json()["role"] == "Operator" and r.headers["ETag"] != tag
    problem(service.patch(made["href"], {"role": "ReadOnly"}, headers={"If-Match": tag}), 412)
    again = service.patch(made["href"], {"role": "Operator"})
    assert again.headers["ETag"] == r.headers["ETag"]
    assert service.delete(made["href"]).status_code == 204
    problem(service.get(made["href"]), 404)
    problem(service.get("/api/v1/drives", auth=made["auth"]), 401)


@pytest.mark.parametrize(
    "change, pointer",
    [
        ({"password": "short"}, "/password"),
        ({"password": "x" * 129}, "/password"),
        ({"password": None}, "/password"),
        ({"name": ""}, "/name"),
        ({"name": "a b"}, "/name"),
        ({"name": "a:b"}, "/name"),
        ({"name": "x" * 65}, "/name"),
        ({"role": "Root"}, "/role"),
        ({"role": None}, "/role"),
        ({"enabled": "yes"}, "/enabled"),
        ({"colour": "red"}, "/colour"),
        ({"a/b~c": 1}, "/a~1b~0c"),
    ],
)
def test_bad_accounts_name_the_field(service, change, pointer):
    body = {"name": "bad", "password": PASSWORD, "role": "ReadOnly", **change}
    problem(service.post("/api/v1/accounts", body), 400, pointer)


def test_names_are_unique(service, account):
    body = {"name": account["name"], "password": PASSWORD, "role": "ReadOnly"}
    problem(service.post("/api/v1/accounts", body), 409)
    other = make_account(service, "other", "ReadOnly")
    problem(service.patch(other["href"], {"name": account["name"]}), 409)
    service.delete(other["href"])


def test_passwords_may_have_any_letters(service):
    made = make_account(service, "letters", "ReadOnly", "pässwörd: 日本語")
    auth = (made["auth"][0].encode(), made["auth"][1].encode())
    assert service.get("/api/v1/drives", auth=auth).status_code == 200
    service.delete(made["href"])


def test_the_last_administrator_stays(start):
    service = start("--simulate", "1")
    admin = service.json("/api/v1/accounts")["items"][0]
    problem(service.delete(admin["href"]), 409)
    problem(service.patch(admin["href"], {"enabled": False}), 409)
    problem(service.patch(admin["href"], {"role": "Operator"}), 409)
    second = make_account(service, "second", "Administrator")
    service.patch(second["href"], {"enabled": False})
    problem(service.delete(admin["href"]), 409)
    service.patch(second["href"], {"enabled": True})
    assert service.delete(admin["href"]).status_code == 204
    problem(service.get("/api/v1/drives"), 401)
    assert service.get("/api/v1/drives", auth=second["auth"]).status_code == 200


def test_own_password_may_be_changed(service, account):
    new = (account["name"], "another-good-password")
    r = service.patch(account["href"], {"password": new[1]}, auth=account["auth"])
    assert r.status_code == 200, r.text
    problem(service.get("/api/v1/drives", auth=account["auth"]), 401)
    assert service.get("/api/v1/drives", auth=new).status_code == 200
    problem(service.patch(account["href"], {"password": "short"}, auth=new), 400, "/password")


@pytest.mark.parametrize("change", [{"role": "Administrator"}, {"enabled": True}, {"name": "root"}])
def test_nothing_else_of_ones_own_may_be_changed(service, account, change):
    problem(service.patch(account["href"], change, auth=account["auth"]), 403)
    problem(service.patch(account["href"], {**change, "password": PASSWORD}, auth=account["auth"]), 403)


def test_others_are_not_there_for_those_below(service, account, people):
    admin = service.json("/api/v1/accounts")["items"][0]
    for who in ("ReadOnly", "Operator"):
        problem(service.get(admin["href"], auth=people[who]), 404)
        problem(service.patch(admin["href"], {"password": PASSWORD}, auth=people[who]), 404)
    assert service.get(account["href"], auth=account["auth"]).status_code == 200


def test_a_disabled_account_is_shut_out_at_once(service, account):
    token = token_of(service, account)
    assert service.get("/api/v1/drives", auth=account["auth"]).status_code == 200
    assert service.get("/api/v1/drives", auth=token).status_code == 200
    service.patch(account["href"], {"enabled": False})
    problem(service.get("/api/v1/drives", auth=account["auth"]), 401)
    problem(service.get("/api/v1/drives", auth=token), 401)
    service.patch(account["href"], {"enabled": True})
    assert service.get("/api/v1/drives", auth=token).status_code == 200


def test_a_role_taken_away_is_gone_at_once(service, account):
    token = token_of(service, account)
    body = {"pattern": "read"}
    assert service.put("/api/v1/workloads/w", body, auth=token).status_code == 201
    service.patch(account["href"], {"role": "ReadOnly"})
    problem(service.put("/api/v1/workloads/w", body, auth=token), 403)
    problem(service.put("/api/v1/workloads/w", body, auth=account["auth"]), 403)
    service.delete("/api/v1/workloads/w")


# -- tokens -----------------------------------------------------------------------------------------


def test_life_of_a_token(service, account):
    r = service.post("/api/v1/tokens", {"name": "ci"}, auth=account["auth"])
    assert r.headers["Cache-Control"] == "no-store"
    made = r.json()
    assert made["role"] == "Operator" and made["expires_at"] is None
    assert len(made["token"]) >= 32
    shown = service.get(made["href"], auth=account["auth"]).json()
    assert shown == {k: v for k, v in made.items() if k != "token"}
    assert shown in service.get("/api/v1/tokens", auth=account["auth"]).json()["items"]
    auth = bearer(made["token"])
    assert service.get("/api/v1/drives", auth=auth).status_code == 200
    assert service.delete(made["href"], auth=account["auth"]).status_code == 204
    problem(service.get("/api/v1/drives", auth=auth), 401)
    problem(service.get(made["href"], auth=account["auth"]), 404)


def test_a_token_expires(service, account):
    token = token_of(service, account, expires_at=in_ms(1500))
    assert service.get("/api/v1/drives", auth=token).status_code == 200
    wait_until(lambda: service.get("/api/v1/drives", auth=token).status_code == 401, 10)


def test_a_token_has_at_most_its_makers_role(service, account):
    body = {"name": "t", "role": "Administrator"}
    problem(service.post("/api/v1/tokens", body, auth=account["auth"]), 403, "/role")
    reader = token_of(service, account, role="ReadOnly")
    assert service.get("/api/v1/drives", auth=reader).status_code == 200
    problem(service.put("/api/v1/workloads/w", {"pattern": "read"}, auth=reader), 403)
    problem(service.post("/api/v1/tokens", {"name": "t", "role": "Operator"}, auth=reader), 403, "/role")


def test_a_lesser_token_does_not_take_the_account_over(service):
    admin = make_account(service, "careful", "Administrator")
    reader = token_of(service, admin, role="ReadOnly")
    problem(service.patch(admin["href"], {"password": "mine-from-now-on"}, auth=reader), 403)
    assert service.get("/api/v1/drives", auth=admin["auth"]).status_code == 200
    service.delete(admin["href"])


def test_a_token_outlives_no_token_that_made_it(service, account):
    r = service.post("/api/v1/tokens", {"name": "t", "expires_at": in_ms(60000)}, auth=account["auth"])
    maker, auth = r.json(), bearer(r.json()["token"])
    made = service.post("/api/v1/tokens", {"name": "minted"}, auth=auth)
    assert made.status_code == 201 and made.json()["expires_at"] == maker["expires_at"]
    later = {"name": "minted", "expires_at": in_ms(120000)}
    problem(service.post("/api/v1/tokens", later, auth=auth), 403, "/expires_at")
    sooner = {"name": "minted", "expires_at": in_ms(30000)}
    assert service.post("/api/v1/tokens", sooner, auth=auth).status_code == 201
    again = service.post("/api/v1/tokens", {"name": "again"}, auth=bearer(made.json()["token"]))
    assert again.json()["expires_at"] == maker["expires_at"]


def test_a_token_sets_a_password_only_with_the_current_one(service, account):
    token = token_of(service, account)
    new = {"password": "another-good-password"}
    problem(service.patch(account["href"], new, auth=token), 403, "/current_password")
    wrong = {**new, "current_password": "not-the-password"}
    problem(service.patch(account["href"], wrong, auth=token), 403, "/current_password")
    problem(service.patch(account["href"], wrong, auth=account["auth"]), 403, "/current_password")
    problem(service.patch(account["href"], {**new, "current_password": PASSWORD}), 400, "/current_password")
    assert service.get("/api/v1/drives", auth=account["auth"]).status_code == 200
    right = {**new, "current_password": PASSWORD}
    assert service.patch(account["href"], right, auth=token).status_code == 200
    assert service.get("/api/v1/drives", auth=(account["name"], new["password"])).status_code == 200


def test_guesses_of_the_current_password_are_held_up(start):
    service = start("--simulate", "1", "--login-failures", "3")
    made = make_account(service, "somebody", "ReadOnly")
    token = token_of(service, made)
    body = {"password": "another-good-password", "current_password": "wrong-password"}
    statuses = [service.patch(made["href"], body, auth=token).status_code for _ in range(5)]
    assert statuses == [403, 403, 403, 429, 429]


def test_an_account_has_a_bounded_number_of_tokens(service):
    made = make_account(service, f"many-{time.monotonic_ns()}", "ReadOnly")
    most = service.json("/api/v1/system")["limits"]["tokens_per_account"]
    ends = service.post("/api/v1/tokens", {"name": "t"}, auth=made["auth"]).json()
    for _ in range(most - 1):
        token_of(service, made)
    full = problem(service.post("/api/v1/tokens", {"name": "t"}, auth=made["auth"]), 409)
    assert str(most) in full["detail"]
    assert service.delete(ends["href"], auth=made["auth"]).status_code == 204
    ends = service.post("/api/v1/tokens", {"name": "t", "expires_at": in_ms(500)}, auth=made["auth"]).json()
    # One that expired makes room.
    r = wait_until(
        lambda: (r := service.post("/api/v1/tokens", {"name": "t"}, auth=made["auth"])).status_code != 409 and r
    )
    assert r.status_code == 201
    problem(service.get(ends["href"], auth=made["auth"]), 404)
    service.delete(made["href"])


@pytest.mark.parametrize(
    "body, pointer",
    [
        ({}, "/name"),
        ({"name": "a b"}, "/name"),
        ({"name": "t", "role": "Root"}, "/role"),
        ({"name": "t", "expires_at": "2001-01-01T00:00:00Z"}, "/expires_at"),
        ({"name": "t", "expires_at": "soon"}, "/expires_at"),
        ({"name": "t", "token": "mine"}, "/token"),
    ],
)
def test_bad_tokens_name_the_field(service, body, pointer):
    problem(service.post("/api/v1/tokens", body), 400, pointer)


def test_tokens_are_ones_own(service, account, people):
    made = service.post("/api/v1/tokens", {"name": "mine"}, auth=account["auth"]).json()
    problem(service.get(made["href"], auth=people["Operator"]), 404)
    problem(service.delete(made["href"], auth=people["Operator"]), 404)
    listed = service.get("/api/v1/tokens", auth=people["Operator"]).json()["items"]
    assert made["id"] not in [t["id"] for t in listed]
    assert made["id"] in [t["id"] for t in service.json("/api/v1/tokens?limit=1000")["items"]]
    assert service.delete(made["href"]).status_code == 204


def test_tokens_go_with_their_account(service):
    made = make_account(service, "leaving", "Operator")
    token = token_of(service, made)
    assert service.get("/api/v1/drives", auth=token).status_code == 200
    service.delete(made["href"])
    problem(service.get("/api/v1/drives", auth=token), 401)


# -- secrets ----------------------------------------------------------------------------------------


def test_no_secret_is_shown_again(start):
    service = start("--simulate", "1", "--log-level", "debug")
    made = make_account(service, "quiet", "Operator", "do-not-show-this")
    token = service.post("/api/v1/tokens", {"name": "quiet"}, auth=made["auth"]).json()["token"]
    problem(service.get("/api/v1/drives", auth=("quiet", "wrong-and-secret")), 401)
    secrets = (PASSWORD, "do-not-show-this", "wrong-and-secret", token)
    shown = ""
    for path in ("accounts", "tokens", "audit", "events", "system"):
        shown += service.get(f"/api/v1/{path}").text
    shown += service.get(made["href"]).text + service.get("/metrics").text
    service.stop()
    shown += service.log() + "\n".join(service.lines)
    assert "argon2" not in shown
    for secret in secrets:
        assert secret not in shown
    for name in ("control.db", "control.db-wal"):
        try:
            with open(f"{service.data_dir}/{name}", "rb") as f:
                stored = f.read()
        except FileNotFoundError:
            continue
        for secret in secrets:
            assert secret.encode() not in stored


def test_the_trail_tells_who_changed_what(service, account):
    service.patch(account["href"], {"role": "ReadOnly"}, headers={"X-Request-Id": "trail-1"})
    rows = service.json("/api/v1/audit?limit=5")["items"]
    row = next(r for r in rows if r["request_id"] == "trail-1")
    assert row["actor"] == "admin" and row["action"] == "account.update"
    assert row["address"] == "127.0.0.1" and row["outcome"] == "ok"
    assert row["object"].endswith(account["href"].removeprefix("/api/v1"))
