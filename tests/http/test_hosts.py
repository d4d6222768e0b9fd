"""Hosts and their BMCs: settings, transport security, readings, faults, and a run measured by one."""

import os
import statistics
import time
import uuid

import pytest
from fakebmc import FakeBmc
from service import Service, bearer, problem, wait_until

SECRET = "calvin-the-secret"


@pytest.fixture(scope="module")
def service():
    service = Service("--meter", "100ms").start()
    yield service
    service.close()


@pytest.fixture
def bmc():
    with FakeBmc(watts=402, password=SECRET) as bmc:
        yield bmc


def settings(bmc, **change):
    tls = {"verify": "pin", "fingerprint_sha256": bmc.fingerprint_sha256}
    return {"url": bmc.url, "username": bmc.username, "password": SECRET, "tls": tls, **change}


@pytest.fixture
def hosts(service):
    """Makes hosts that are gone after the test."""
    made = []

    def make(**body):
        r = service.post("/api/v1/hosts", {"name": f"h-{uuid.uuid4()}", **body})
        assert r.status_code == 201, r.text
        made.append(r.json()["href"])
        return r.json()

    yield make
    for href in made:
        service.delete(href)


def power(service, host):
    return service.json(host["href"] + "/power")


def reads(service, host, watts, timeout_s=15):
    return wait_until(
        lambda: (lambda p: p if p["power_w"] == watts else None)(power(service, host)), timeout_s, f"{watts} W"
    )


def fails(service, host, reason, timeout_s=15):
    """Waits for a reading without a value and this reason."""

    def gone():
        p = power(service, host)
        return p if p["power_w"] is None and p["reason"] == reason else None

    return wait_until(gone, timeout_s, reason)


# -- settings ---------------------------------------------------------------------------------------


def test_life_of_a_host(service):
    r = service.post("/api/v1/hosts", {"name": "rack1-7", "labels": {"rack": "r1"}})
    assert r.status_code == 201 and r.headers["Location"] == r.json()["href"]
    host = r.json()
    assert host["bmc"] is None and host["local"] is False
    uuid.UUID(host["id"])
    assert host["id"] in [h["id"] for h in service.json("/api/v1/hosts")["items"]]
    tag = service.get(host["href"]).headers["ETag"]
    r = service.patch(host["href"], {"name": "rack1-8"}, headers={"If-Match": tag})
    assert r.json()["name"] == "rack1-8" and r.json()["labels"] == {"rack": "r1"}
    problem(service.patch(host["href"], {"name": "x"}, headers={"If-Match": tag}), 412)
    problem(service.delete(host["href"], headers={"If-Match": tag}), 412)
    r = service.put(host["href"], {"name": "rack1-9"})
    assert r.status_code == 200 and r.json()["labels"] == {}
    assert service.delete(host["href"]).status_code == 204
    problem(service.get(host["href"]), 404)


def test_put_makes_what_an_automation_names(service):
    path = f"/api/v1/hosts/{uuid.uuid4()}"
    r = service.put(path, {"name": "by-ansible"})
    assert r.status_code == 201 and r.json()["href"] == path
    again = service.put(path, {"name": "by-ansible"})
    assert again.status_code == 200 and again.headers["ETag"] == r.headers["ETag"]
    assert service.delete(path).status_code == 204
    problem(service.put("/api/v1/hosts/no-uuid", {"name": "x"}), 400)


def test_the_same_settings_twice_are_no_change(service, bmc, hosts):
    host = hosts(name="twice", bmc=settings(bmc))
    tag = service.get(host["href"]).headers["ETag"]
    reads(service, host, 402)
    r = service.put(host["href"], {"name": "twice", "bmc": settings(bmc)})
    assert r.status_code == 200 and r.headers["ETag"] == tag


def test_the_local_host_stays(service):
    local = service.json("/api/v1/hosts/local")
    assert local["local"] is True and local["id"] == service.json("/api/v1/system")["id"]
    problem(service.delete("/api/v1/hosts/local"), 409)
    problem(service.delete(local["href"]), 409)
    r = service.patch("/api/v1/hosts/local", {"labels": {"room": "1"}})
    assert r.json()["labels"] == {"room": "1"} and r.json()["href"] == local["href"]


def test_names_are_unique(service, hosts):
    host, other = hosts(), hosts()
    problem(service.post("/api/v1/hosts", {"name": host["name"]}), 409)
    problem(service.patch(other["href"], {"name": host["name"]}), 409)


PIN = "ab" * 32
BAD = [
    ({"name": ""}, "/name"),
    ({"name": "a\nb"}, "/name"),
    ({"name": None}, "/name"),
    ({"labels": {"a": 1}}, "/labels"),
    ({"colour": "red"}, "/colour"),
    ({"bmc": {}}, "/bmc/url"),
    ({"bmc": []}, "/bmc"),
    ({"bmc": {"url": "http://10.0.0.1"}}, "/bmc/url"),
    ({"bmc": {"url": "ftp://10.0.0.1"}}, "/bmc/url"),
    ({"bmc": {"url": "file:///etc/passwd"}}, "/bmc/url"),
    ({"bmc": {"url": "https://user:pass@10.0.0.1"}}, "/bmc/url"),
    ({"bmc": {"url": "https://10.0.0.1/redfish"}}, "/bmc/url"),
    ({"bmc": {"url": "https://10.0.0.1?x"}}, "/bmc/url"),
    ({"bmc": {"url": "https://10.0.0.1:99999"}}, "/bmc/url"),
    ({"bmc": {"url": "https://10.0.0.1 "}}, "/bmc/url"),
    ({"bmc": {"url": "https://10.0.0.1", "vendor": "acme"}}, "/bmc/vendor"),
    ({"bmc": {"url": "https://10.0.0.1", "username": "a:b"}}, "/bmc/username"),
    ({"bmc": {"url": "https://10.0.0.1", "port": 443}}, "/bmc/port"),
    ({"bmc": {"url": "https://10.0.0.1", "allow_plaintext": "yes"}}, "/bmc/allow_plaintext"),
    ({"bmc": {"url": "https://10.0.0.1", "tls": {"verify": "maybe"}}}, "/bmc/tls/verify"),
    ({"bmc": {"url": "https://10.0.0.1", "tls": {"verify": "pin"}}}, "/bmc/tls/fingerprint_sha256"),
    ({"bmc": {"url": "https://10.0.0.1", "tls": {"verify": "pin", "fingerprint_sha256": "ab"}}}, "/bmc/tls/fingerprint_sha256"),
    ({"bmc": {"url": "https://10.0.0.1", "tls": {"verify": "ca", "fingerprint_sha256": PIN}}}, "/bmc/tls/fingerprint_sha256"),
    ({"bmc": {"url": "https://10.0.0.1", "tls": {"verify": "ca", "ca_file": "/nothing"}}}, "/bmc/tls/ca_file"),
    ({"bmc": {"url": "https://10.0.0.1", "tls": {"verify": "ca", "ca_file": "relative.pem"}}}, "/bmc/tls/ca_file"),
    ({"bmc": {"url": "https://10.0.0.1", "tls": {"verify": "ca", "ca_file": "/dev/zero"}}}, "/bmc/tls/ca_file"),
    ({"bmc": {"url": "https://10.0.0.1", "tls": {"verify": "ca", "ca_file": "/etc"}}}, "/bmc/tls/ca_file"),
    ({"bmc": {"url": "https://10.0.0.1", "tls": {"insecure": True}}}, "/bmc/tls/insecure"),
    ({"bmc": {"url": "https://10.0.0.1", "tls": {"ciphers": "ROT13"}}}, "/bmc/tls/ciphers"),
    ({"bmc": {"url": "https://10.0.0.1", "tls": {"ciphers": "A" * 128}}}, "/bmc/tls/ciphers"),
]


@pytest.mark.parametrize("change, pointer", BAD, ids=[str(n) for n in range(len(BAD))])
def test_bad_settings_name_the_field(service, change, pointer):
    before = len(service.json("/api/v1/hosts")["items"])
    problem(service.post("/api/v1/hosts", {"name": "bad", **change}), 400, pointer)
    assert len(service.json("/api/v1/hosts")["items"]) == before


# -- the password -----------------------------------------------------------------------------------


def test_the_password_is_never_shown_and_sealed(start, bmc):
    service = start("--meter", "100ms", "--log-level", "debug")
    host = service.post("/api/v1/hosts", {"name": "sealed", "bmc": settings(bmc)}).json()
    assert "password" not in host["bmc"]
    reads(service, host, 402)
    shown = "".join(service.get(p).text for p in (host["href"], "/api/v1/hosts", "/api/v1/audit", "/api/v1/events"))
    assert SECRET not in shown
    service.stop()
    assert SECRET not in service.log()
    for name in os.listdir(service.data_dir):
        path = os.path.join(service.data_dir, name)
        if os.path.isfile(path):
            with open(path, "rb") as f:
                assert SECRET.encode() not in f.read(), name
    service.start()
    reads(service, host, 402)


def test_a_key_beside_the_data_may_be_used(start, bmc, tmp_path):
    keys = tmp_path / "keys"
    keys.mkdir(mode=0o777)
    keys.chmod(0o777)
    service = start("--meter", "100ms", "--secret-key-file", str(keys / "key"))
    host = service.post("/api/v1/hosts", {"name": "keyed", "bmc": settings(bmc)}).json()
    reads(service, host, 402)
    assert (keys / "key").stat().st_mode & 0o077 == 0
    assert "secret.key" not in os.listdir(service.data_dir)


def test_another_url_needs_the_password_again(service, bmc, hosts):
    host = hosts(bmc=settings(bmc))
    with FakeBmc(watts=1, password=SECRET) as thief:
        moved = settings(thief)
        del moved["password"]
        problem(service.patch(host["href"], {"bmc": moved}), 400, "/bmc/password")
        assert thief.requests == []


def test_the_password_stays_when_it_is_not_given(service, bmc, hosts):
    host = hosts(bmc=settings(bmc))
    reads(service, host, 402)
    change = settings(bmc, vendor="redfish")
    del change["password"]
    assert service.patch(host["href"], {"bmc": change}).json()["bmc"]["vendor"] == "redfish"
    bmc.watts = 403
    reads(service, host, 403)


def test_settings_are_the_administrators(service, bmc):
    made = service.post(
        "/api/v1/accounts", {"name": "op", "password": "passpass1", "role": "Operator"}
    )
    token = bearer(service.post("/api/v1/tokens", {"name": "t"}, auth=("op", "passpass1")).json()["token"])
    problem(service.post("/api/v1/hosts", {"name": "x", "bmc": settings(bmc)}, auth=token), 403)
    assert service.get("/api/v1/hosts", auth=token).status_code == 200
    service.delete(made.json()["href"])


# -- transport security -----------------------------------------------------------------------------


def test_a_pinned_certificate(service, bmc, hosts):
    host = hosts(bmc=settings(bmc))
    assert host["bmc"]["tls"] == {
        "verify": "pin", "ca_file": None, "fingerprint_sha256": bmc.fingerprint_sha256, "ciphers": None}
    reads(service, host, 402)


def test_a_wrong_pin_sends_no_password(service, bmc, hosts):
    host = hosts(bmc=settings(bmc, tls={"verify": "pin", "fingerprint_sha256": PIN}))
    fails(service, host, "bmc_tls")
    assert bmc.requests == []


def test_a_certificate_of_a_ca(service, bmc, hosts):
    os.chmod(bmc.directory.name, 0o755)
    os.chmod(bmc.ca_file, 0o644)
    host = hosts(bmc=settings(bmc, tls={"verify": "ca", "ca_file": bmc.ca_file}))
    reads(service, host, 402)


def test_a_ca_of_the_system_does_not_know_it(service, bmc, hosts):
    host = hosts(bmc=settings(bmc, tls={"verify": "ca"}))
    fails(service, host, "bmc_tls")
    assert bmc.requests == []


def test_a_certificate_of_another_name(service, hosts):
    with FakeBmc(watts=402, password=SECRET, name="bmc.example") as bmc:
        os.chmod(bmc.directory.name, 0o755)
        os.chmod(bmc.ca_file, 0o644)
        host = hosts(bmc=settings(bmc, tls={"verify": "ca", "ca_file": bmc.ca_file}))
        fails(service, host, "bmc_tls")
        assert bmc.requests == []


def test_ciphers_that_an_old_bmc_wants(start):
    """Each BMC has its own list, also after a restart."""
    service = start("--meter", "100ms")
    old, default = "AES256-SHA", FakeBmc(watts=402, password=SECRET, tls12=True)
    with default, FakeBmc(watts=402, password=SECRET, tls12=True) as bmc:
        tls = {"verify": "pin", "fingerprint_sha256": bmc.fingerprint_sha256, "ciphers": f"{old}:@SECLEVEL=0"}
        host = service.post("/api/v1/hosts", {"name": "old", "bmc": settings(bmc, tls=tls)}).json()
        assert host["bmc"]["tls"]["ciphers"] == tls["ciphers"]
        other = service.post("/api/v1/hosts", {"name": "new", "bmc": settings(default)}).json()
        reads(service, host, 402)
        reads(service, other, 402)
        service.stop()
        service.start()
        bmc.watts = 403
        reads(service, host, 403)
        assert bmc.ciphers == {old} and old not in default.ciphers
        no_tls = {**tls, "ciphers": "PSK-AES256-CBC-SHA"}
        service.patch(host["href"], {"bmc": settings(bmc, tls=no_tls)})
        fails(service, host, "bmc_unreachable")


def test_no_verification_when_asked_for(service, bmc, hosts):
    host = hosts(bmc=settings(bmc, tls={"verify": "none"}))
    reads(service, host, 402)


def test_plaintext_when_asked_for(service, hosts):
    with FakeBmc(watts=277, password=SECRET, plain=True) as bmc:
        plain = {"url": bmc.url, "username": bmc.username, "password": SECRET}
        problem(service.post("/api/v1/hosts", {"name": "plain", "bmc": plain}), 400, "/bmc/url")
        assert bmc.requests == []
        host = hosts(bmc={**plain, "allow_plaintext": True})
        reads(service, host, 277)


# -- readings ---------------------------------------------------------------------------------------


def test_a_reading_in_full(service, bmc, hosts):
    bmc.limit_w = 600
    host = hosts(bmc=settings(bmc))
    p = reads(service, host, 402)
    assert p["reason"] is None and p["quality"] == "bmc" and p["simulated"] is False
    assert p["limit_w"] == 600 and p["source"]
    assert 0 <= p["age_s"] < 5
    tag = service.get(host["href"] + "/power").headers["ETag"]
    assert tag.startswith('"c') and ".o" in tag


@pytest.mark.parametrize("shape", ["environment", "power", "sensor", "supplies"])
def test_every_place_where_bmcs_keep_it(service, shape, hosts):
    with FakeBmc(watts=312, password=SECRET, shape=shape) as bmc:
        host = hosts(bmc=settings(bmc))
        p = reads(service, host, 312)
        assert p["quality"] == ("derived" if shape == "supplies" else "bmc")


def test_what_a_bmc_tells_beside_its_watts(service, hosts):
    with FakeBmc(vendor="dell9", password=SECRET) as bmc:
        host = hosts(bmc=settings(bmc))
        reads(service, host, 317)
        p = wait_until(lambda: (lambda p: p if p["energy_counter_kwh"] else None)(power(service, host)))
        assert (p["power_w"], p["source"], p["quality"]) == (317, "PowerControl", "bmc")
        assert p["limit_w"] is None, "32767 is no cap"
        assert p["energy_counter_kwh"] == pytest.approx(2451.877)
        assert p["energy_counter_since"] == "2021-07-02T20:29:00.000Z" and p["energy_counter_reset_at"] is None
        assert p["inlet_c"] == 21
        assert [s["name"] for s in p["supplies"]] == ["PS1 Status", "PS2 Status"]
        assert p["supplies"][1]["state"] == "UnavailableOffline"
        for supply in p["supplies"]:
            assert supply["input_w"] is None, "900 W twice is no input of a server that takes 317 W"
            assert supply["output_w"] is None and supply["capacity_w"] is None
            assert supply["efficiency_pct"] == 93.75 and supply["redundancy"] == "not_redundant"

        def values(quantity):
            series = service.json(f"/api/v1/series?host={host['id']}&quantity={quantity}")["items"]
            return [s["value"] for one in series for s in service.json(one["href"] + "/samples")["items"]]

        wait_until(lambda: values("energy_counter") == [2451.877] and values("temperature") == [21])
        bmc.set("/redfish/v1/Chassis/System.Embedded.1/Power", "PowerControl/0/PowerLimit/LimitInWatts", 700)
        wait_until(lambda: power(service, host)["limit_w"] == 700)


def test_one_session_closed_at_the_end(service, bmc, hosts):
    host = hosts(bmc=settings(bmc))
    reads(service, host, 402)
    wait_until(lambda: len(bmc.requests) > 20)
    assert (bmc.sessions.opened, bmc.sessions.closed) == (1, 0)
    service.delete(host["href"])
    wait_until(lambda: bmc.sessions.closed == 1)
    assert bmc.sessions.tokens == {}


def test_watts_become_history(service, bmc, hosts):
    host = hosts(bmc=settings(bmc))
    reads(service, host, 402)
    wait_until(lambda: len(history(service, host)["points"]) > 0 and history(service, host)["total"]["energy_kwh"])
    h = history(service, host)
    assert h["quality"] == "bmc" and h["simulated"] is False and h["unit"] == "W"
    known = [p for p in h["points"] if p["avg_w"] is not None]
    assert known and all(p["avg_w"] == pytest.approx(402) for p in known)
    total = h["total"]
    ms = 402 * 0.001 / 3.6e6
    assert total["energy_kwh"] == pytest.approx(402 * total["covered_s"] / 3.6e6, abs=2 * ms)
    assert total["covered_s"] <= total["expected_s"]
    series = service.json(f"/api/v1/series?host={host['id']}&quantity=power")["items"]
    assert [s["object"] for s in series] == ["host"]
    samples = service.json(series[0]["href"] + "/samples")["items"]
    assert samples and {s["value"] for s in samples} == {402}
    metrics = service.get("/metrics").text
    assert f'drivewatt_host_power_watts{{host="{host["id"]}"' in metrics


def history(service, host):
    r = service.get(host["href"] + "/energy?from=-1m&step=1s")
    return r.json() if r.status_code == 200 else {"points": [], "total": {"energy_kwh": None}}


def test_the_resolution_is_learnt(service, hosts):
    beat = iter(range(10**6))
    with FakeBmc(watts=lambda: 330 + 33 * (next(beat) % 9), password=SECRET) as bmc:
        host = hosts(bmc=settings(bmc))
        wait_until(lambda: power(service, host)["resolution_w"] == 33, 20, "a resolution of 33 W")


def test_a_host_without_a_bmc_says_so(service, hosts):
    host = hosts()
    p = power(service, host)
    assert p["power_w"] is None and p["reason"] and p["quality"] is None and p["at"] is None
    problem(service.get(host["href"] + "/energy"), 404)


def test_a_meter_that_reports_nothing(service, bmc, hosts):
    bmc.watts = None
    host = hosts(bmc=settings(bmc))
    p = wait_until(lambda: (lambda p: p if p["reason"] and bmc.requests else None)(power(service, host)))
    assert p["power_w"] is None
    bmc.watts = 401
    reads(service, host, 401, 90)


# -- faults -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mode, reason",
    [
        ("500", "bmc_error"),
        ("503", "bmc_busy"),
        ("garbage", None),
        ("html", None),
        ("truncated", "bmc_truncated"),
        ("huge", "bmc_too_large"),
        ("redirect", None),
        ("404", None),
        ("403", None),
    ],
)
def test_a_fault_is_told_and_passes(service, bmc, hosts, mode, reason):
    host = hosts(bmc=settings(bmc))
    reads(service, host, 402)
    bmc.mode = mode
    p = wait_until(lambda: (lambda p: p if p["power_w"] is None else None)(power(service, host)), what="the fault")
    assert p["reason"] and (reason is None or p["reason"] == reason)
    bmc.mode, bmc.watts = "ok", 403
    reads(service, host, 403, 60)


@pytest.mark.parametrize("mode", ["control_bytes", "error_first"])
def test_faulty_json_is_read_all_the_same(service, bmc, hosts, mode):
    bmc.mode = mode
    host = hosts(bmc=settings(bmc))
    reads(service, host, 402)


def test_a_wrong_password_is_not_tried_over_and_over(service, bmc, hosts):
    host = hosts(bmc=settings(bmc, password="wrong"))
    fails(service, host, "bmc_unauthorized")
    tried = len(bmc.requests)
    pause(1.5)
    assert len(bmc.requests) == tried <= 3
    service.patch(host["href"], {"bmc": settings(bmc)})
    reads(service, host, 402)


def pause(seconds):
    """Lets time pass in which nothing may happen."""
    end = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() > end, seconds + 5)


def told(service, host):
    """The states of its BMC that events tell."""
    events = service.json("/api/v1/events?limit=1000")["items"]
    return [e["data"]["state"] for e in events if e["type"] == "bmc.state_changed" and e["object"] == host["href"]]


def test_a_bmc_that_dies_is_told_once_and_comes_back(service, bmc, hosts):
    host = hosts(bmc=settings(bmc))
    reads(service, host, 402)
    bmc.die()
    fails(service, host, "bmc_unreachable")
    wait_until(lambda: told(service, host) == ["unreachable"], 30, "an event")
    bmc.watts = 404
    bmc.revive()
    reads(service, host, 404, 60)
    wait_until(lambda: told(service, host) == ["unreachable", "reachable"], 15, "the other event")


def test_failures_back_off(service, bmc, hosts):
    bmc.mode = "503"
    host = hosts(bmc=settings(bmc))
    fails(service, host, "bmc_busy")
    pause(3)
    assert len(bmc.requests) < 10, "thirty periods without a pause"


def test_a_hung_bmc_holds_up_nobody(service, hosts):
    with FakeBmc(watts=1, password=SECRET, mode="slow") as slow, FakeBmc(watts=555, password=SECRET) as good:
        hosts(bmc=settings(slow))
        wait_until(lambda: slow.requests, what="the hung BMC is asked")
        host = hosts(bmc=settings(good))
        reads(service, host, 555, 5)
        before = len(good.requests)
        wait_until(lambda: len(good.requests) > before + 10, 10, "it is asked on")


def test_a_bmc_is_asked_one_thing_at_a_time(service, bmc, hosts):
    host = hosts(bmc=settings(bmc))
    reads(service, host, 402)
    wait_until(lambda: len(bmc.requests) > 20)
    assert bmc.most_at_once == 1
    assert bmc.connections <= 3, "the connection is kept"


def test_a_deleted_host_is_asked_no_more(service, bmc, hosts):
    host = hosts(bmc=settings(bmc))
    reads(service, host, 402)
    assert service.delete(host["href"]).status_code == 204
    pause(0.3)
    asked = len(bmc.requests)
    pause(0.7)
    assert len(bmc.requests) <= asked + 1


def test_a_bmc_taken_away(service, bmc, hosts):
    host = hosts(bmc=settings(bmc))
    reads(service, host, 402)
    assert service.patch(host["href"], {"bmc": None}).json()["bmc"] is None
    wait_until(lambda: power(service, host)["power_w"] is None, 10)


# -- baselines --------------------------------------------------------------------------------------


def test_baselines_are_declared_and_removed(service, hosts):
    path = hosts()["href"] + "/baseline"
    empty = service.json(path)
    assert empty["idle_with_drives"] is None and empty["no_drives"] is None
    r = service.put(path, {"no_drives": {"w": 462, "uncertainty_w": 3.5}})
    made = r.json()["no_drives"]
    assert (made["w"], made["uncertainty_w"], made["source"]) == (462, 3.5, "declared")
    again = service.put(path, {"no_drives": {"w": 462, "uncertainty_w": 3.5}})
    assert again.headers["ETag"] == r.headers["ETag"] and again.json() == r.json()
    r = service.put(path, {"idle_with_drives": {"w": 484}})
    assert r.json()["idle_with_drives"]["uncertainty_w"] is None
    assert r.json()["no_drives"] == made
    problem(service.put(path, {"no_drives": None}, headers={"If-Match": again.headers["ETag"]}), 412)
    r = service.put(path, {"no_drives": None})
    assert r.json()["no_drives"] is None and r.json()["idle_with_drives"]["w"] == 484


@pytest.mark.parametrize(
    "body, pointer",
    [
        ({"no_drives": {}}, "/no_drives/w"),
        ({"no_drives": {"w": -1}}, "/no_drives/w"),
        ({"no_drives": {"w": "462"}}, "/no_drives/w"),
        ({"no_drives": {"w": 1e12}}, "/no_drives/w"),
        ({"no_drives": {"w": 1, "uncertainty_w": -1}}, "/no_drives/uncertainty_w"),
        ({"no_drives": {"w": 1, "source": "measured"}}, "/no_drives/source"),
        ({"no_drives": 462}, "/no_drives"),
        ({"half_drives": {"w": 1}}, "/half_drives"),
    ],
)
def test_bad_baselines_name_the_field(service, body, pointer):
    problem(service.put("/api/v1/hosts/local/baseline", body), 400, pointer)


# -- a run measured by a BMC ------------------------------------------------------------------------


def test_a_real_run_with_watts_of_the_bmc(start, tmp_path):
    target = tmp_path / "target.img"
    target.write_bytes(os.urandom(8 << 20))
    loads = iter(range(10**9))
    with FakeBmc(watts=lambda: 500 + next(loads) % 9, password=SECRET) as bmc:
        service = start("--target", str(target), "--meter", "100ms", "--settle", "50ms")
        service.patch("/api/v1/hosts/local", {"bmc": settings(bmc)})
        service.put("/api/v1/hosts/local/baseline", {"no_drives": {"w": 462, "uncertainty_w": 2}})
        wait_until(lambda: service.json("/api/v1/hosts/local/power")["power_w"])
        wait_until(lambda: service.json("/api/v1/hosts/local/power")["resolution_w"], 30)
        drive = wait_until(service.drives)[0]
        run = service.run(drives=[drive["id"]], workload="rand-read-4k", runtime_s=6, ramp_s=1)
        assert run["state"] == "completed", run["reason"]
        window = run["result"]["window"]
        series = service.json("/api/v1/series?host=local&object=host&quantity=power")["items"][0]
        inside = service.json(f"{series['href']}/samples?from={window['from']}&to={window['to']}")["items"]
    result = run["result"]
    assert result["simulated"] is False and result["environment"]["engine"] == "libaio"
    p = result["power"]
    assert p["reason"] is None or set(p["reasons"]) == {"drive_w"}
    assert p["quality"] == "bmc" and p["system_w"]["samples"] >= 8
    assert p["system_w"]["samples"] <= len(inside)
    assert p["system_w"]["mean"] == pytest.approx(statistics.mean(s["value"] for s in inside), abs=1.5)
    assert 500 <= p["system_w"]["min"] <= p["system_w"]["mean"] <= p["system_w"]["max"] <= 508
    assert (p["baseline"]["kind"], p["baseline"]["source"], p["baseline"]["w"]) == ("no_drives", "declared", 462)
    assert p["above_baseline_w"] == pytest.approx(p["system_w"]["mean"] - 462)
    assert p["per_drive_w"] == pytest.approx(p["above_baseline_w"])
    assert p["uncertainty_w"] >= 2, "at least the baseline's own"
    assert p["resolution_w"] == 1 and p["bound_w"] > 0
    assert p["drive_w"] is None and p["reasons"]["drive_w"]
    read = result["total"]["read"]
    system = result["efficiency"]["system"]
    assert system["iops_per_w"] == pytest.approx(read["iops"] / p["system_w"]["mean"])
    assert system["bytes_per_j"] == pytest.approx(read["bytes_per_s"] / p["system_w"]["mean"])
    assert system["j_per_gb"] == pytest.approx(1e9 / system["bytes_per_j"])
    assert result["efficiency"]["drive"]["iops_per_w"] is None and result["efficiency"]["drive"]["reason"]
    points = service.json(run["href"] + "/series")["points"]
    assert any(point["power_w"] for point in points)
