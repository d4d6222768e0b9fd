"""/metrics: Prometheus text that says what there is, and where it comes from."""

import os
import re
import subprocess

import pytest
from fakebmc import FakeBmc
from service import Service, anonymous, problem, wait_until

PROMTOOL = os.path.join(os.environ.get("PROMETHEUS", "build/prometheus"), "usr/bin/promtool")
QUALITIES = {"measured", "bmc", "derived", "declared", "estimated", "simulated"}
# What a meter or a person says about watts, joules, degrees and the drive's own counts.
READING = re.compile(r"drivewatt_(drive|host|component)_.*(_watts|_joules_total|_celsius|_ratio)$|"
                     r"drivewatt_drive_.*_total$|drivewatt_drive_critical_warning$")
# The program's own, and what a data sheet or a setting says.
NO_READING = {
    "drivewatt_drive_commands_total", "drivewatt_drive_timeouts_total", "drivewatt_drive_drift_total",
    "drivewatt_drive_asleep_total", "drivewatt_drive_wakes_total", "drivewatt_drive_hints_total", "drivewatt_drive_hints_lost_total",
    "drivewatt_drive_power_state_max_watts", "drivewatt_host_power_limit_watts",
    "drivewatt_host_power_resolution_watts",
}
UNITS = ("_watts", "_joules_total", "_seconds", "_seconds_total", "_bytes", "_bytes_total", "_celsius", "_ratio")

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = rf'{NAME}="(?:[^"\\\n]|\\\\|\\"|\\n)*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (-?[0-9.]+(?:e[+-]?[0-9]+)?|NaN|[+-]Inf)")


class Metrics:
    """The text, taken apart strictly: what does not fit fails."""

    def __init__(self, text):
        self.types, self.samples = {}, {}
        helps, current = set(), None
        assert text.endswith("\n")
        for line in text.splitlines():
            if line.startswith("# HELP "):
                _, _, current, help_ = line.split(" ", 3)
                assert current not in helps and help_, line
                helps.add(current)
            elif line.startswith("# TYPE "):
                _, _, name, kind = line.split(" ")
                assert name == current and kind in ("gauge", "counter"), line
                self.types[name] = kind
            else:
                match = SAMPLE.fullmatch(line)
                assert match, line
                name, labels, value = match.groups()
                assert name == current and name in self.types, f"{line} stands below another name"
                assert self.types[name] != "counter" or name.endswith("_total"), line
                key = (name, labels or "")
                assert key not in self.samples, f"{line} is there twice"
                self.samples[key] = float(value)

    def of(self, name):
        """[(labels, value)] of a name."""
        return [
            (dict(re.findall(rf'({NAME})="((?:[^"\\]|\\.)*)"', labels)), value)
            for (have, labels), value in self.samples.items()
            if have == name
        ]

    def one(self, name):
        ((labels, value),) = self.of(name)
        assert labels == {}
        return value


@pytest.fixture(scope="module")
def service():
    service = Service("--simulate", "3").start()
    wait_until(lambda: service.json("/api/v1/hosts/local/power")["power_w"])
    wait_until(lambda: all(d["temperature_c"] for d in service.drives()))
    yield service
    service.close()


def read(service):
    r = service.get("/metrics")
    assert r.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    return Metrics(r.text)


def test_every_line_is_prometheus(service):
    metrics = read(service)
    assert len(metrics.types) > 20
    assert all(name.startswith("drivewatt_") for name in metrics.types)


def test_drives_are_shown(service):
    metrics = read(service)
    drives = {d["id"]: d for d in service.drives()}
    for name in ("up", "power_state", "in_sync", "in_use", "capacity_bytes", "info"):
        rows = metrics.of("drivewatt_drive_" + name)
        assert {labels["drive"] for labels, _ in rows} == set(drives), name
        assert all(labels["simulated"] == "1" for labels, _ in rows)
    for name in ("temperature_celsius", "written_bytes_total"):
        rows = metrics.of("drivewatt_drive_" + name)
        assert {labels["drive"] for labels, _ in rows} == set(drives), name
        assert all(labels["quality"] == "simulated" for labels, _ in rows)
    assert metrics.one("drivewatt_drives") == 3
    for labels, value in metrics.of("drivewatt_drive_info"):
        drive = drives[labels["drive"]]
        assert value == 1
        assert (labels["serial"], labels["model"], labels["firmware"]) == (
            drive["serial"],
            drive["model"],
            drive["firmware"],
        )


def test_what_is_unknown_has_no_line(service):
    assert read(service).of("drivewatt_drive_power_watts") == []


def test_the_host_is_shown(service):
    ((labels, watts),) = read(service).of("drivewatt_host_power_watts")
    power = service.json("/api/v1/hosts/local/power")
    assert labels["host"] == power["id"] and labels["quality"] == "simulated"
    assert labels["source"] == power["source"]
    assert watts == pytest.approx(power["power_w"], rel=0.2)
    ((_, age),) = read(service).of("drivewatt_host_power_age_seconds")
    assert 0 <= age < 10


def test_a_change_of_power_is_shown(service):
    drive = service.drives()[0]
    service.put(drive["href"] + "/power/desired", {"state": 2})
    shown = {labels["drive"]: value for labels, value in read(service).of("drivewatt_drive_power_state")}
    assert shown[drive["id"]] == 2
    wanted = read(service).of("drivewatt_drive_effective_power_state")
    assert [(labels["drive"], value) for labels, value in wanted] == [(drive["id"], 2)]
    service.delete(drive["href"] + "/power/desired")


def test_counters_count(service):
    before = read(service)
    service.get("/api/v1/drives", auth=("admin", "not-the-password"))
    service.put("/api/v1/workloads/w", {"pattern": "read"})
    for _ in range(5):
        service.get("/api/v1/drives")
    after = read(service)
    for name, least in (
        ("drivewatt_http_requests_total", 7),
        ("drivewatt_http_cached_total", 1),
        ("drivewatt_auth_failures_total", 1),
        ("drivewatt_db_commits_total", 1),
    ):
        assert after.one(name) - before.one(name) >= least, name
    for (name, labels), value in before.samples.items():
        if before.types[name] == "counter":
            assert after.samples[name, labels] >= value, name
    assert after.one("drivewatt_http_connections") >= 1
    assert after.one("drivewatt_db_control_healthy") == 1
    assert after.one("drivewatt_db_samples_healthy") == 1


def test_names_with_quotes_do_not_break_the_text(service):
    name = 'a "quoted" \\ name'
    assert service.patch("/api/v1/hosts/local", {"name": name}).status_code == 200
    ((labels, _),) = read(service).of("drivewatt_host_info")
    assert labels["name"] == 'a \\"quoted\\" \\\\ name'
    assert labels["local"] == "1"


def test_promtool_finds_nothing_to_say(service):
    text = service.get("/metrics").text
    r = subprocess.run([PROMTOOL, "check", "metrics"], input=text, capture_output=True, text=True, timeout=60)
    assert (r.returncode, r.stdout, r.stderr) == (0, "", "")


def test_every_reading_says_its_quality(service):
    metrics = read(service)
    readings = [name for name in metrics.types if READING.match(name) and name not in NO_READING]
    assert len(readings) > 20
    for name in readings:
        for labels, _ in metrics.of(name):
            assert labels["quality"] in QUALITIES, f"{name} {labels}"
            assert labels["quality"] != "measured", f"{name}: nothing here is real"
    # Nothing else pretends to be one.
    others = {name for name, labels in metrics.samples if 'quality="' in labels} - set(readings)
    assert others == set()


def test_names_say_their_base_unit(service):
    for name, kind in read(service).types.items():
        assert name.endswith("_total") == (kind == "counter"), name
        assert not re.search(r"_(mw|w|kwh|ms|minutes|hours|days|percent|kb|mb)(_|$)", name), name


def test_smart_figures_are_those_of_the_api(service):
    drive = service.drives()[0]
    health = service.json(drive["href"] + "/health")
    metrics = read(service)

    def shown(name):
        ((_, value),) = [r for r in metrics.of("drivewatt_drive_" + name) if r[0]["drive"] == drive["id"]]
        return value

    for name, key, unit in (
        ("wear_ratio", "percentage_used", 0.01),
        ("spare_ratio", "available_spare_pct", 0.01),
        ("power_on_seconds_total", "power_on_h", 3600),
        ("power_cycles_total", "power_cycles", 1),
        ("media_errors_total", "media_errors", 1),
    ):
        assert shown(name) == pytest.approx(health[key] * unit), name
    assert shown("capacity_bytes") == drive["capacity_bytes"]
    states = service.json(drive["href"] + "/power")["states"]
    now = shown("power_state")
    assert shown("power_state_max_watts") == next(s["max_w"] for s in states if s["state"] == now)


def test_what_a_bmc_tells_is_the_bmcs(service):
    with FakeBmc(vendor="dell9", plain=True) as bmc:
        settings = {"url": bmc.url, "username": bmc.username, "password": bmc.password, "allow_plaintext": True}
        body = {"name": "dell", "bmc": {**settings, "tls": {"verify": "none"}}}
        host = service.post("/api/v1/hosts", body).json()

        def told():
            power = service.json(host["href"] + "/power")
            return power if power["energy_counter_kwh"] and power["inlet_c"] else None

        power = wait_until(told)
        metrics = read(service)
        service.delete(host["href"])

    def of_host(name):
        return [(labels, v) for labels, v in metrics.of("drivewatt_host_" + name) if labels["host"] == host["id"]]

    for name, value in (
        ("power_watts", power["power_w"]),
        ("energy_joules_total", power["energy_counter_kwh"] * 3.6e6),
        ("inlet_temperature_celsius", power["inlet_c"]),
    ):
        ((labels, shown),) = of_host(name)
        assert labels["quality"] == "bmc" and shown == pytest.approx(value), name
    assert of_host("power_limit_watts") == [], "32767 is no cap"
    assert [v for _, v in of_host("power_known")] == [1]
    qualities = {labels["quality"] for labels, _ in metrics.of("drivewatt_host_power_watts")}
    assert qualities == {"bmc", "simulated"}, "which nobody sums by accident"


def test_version_and_uptime(service):
    ((labels, value),) = read(service).of("drivewatt_build_info")
    assert value == 1 and labels["version"] == service.json("/api/v1/system")["version"]
    assert read(service).one("drivewatt_uptime_seconds") > 0


def test_credentials_are_needed_unless_configured(service, start):
    problem(service.get("/metrics", auth=anonymous), 401)
    public = start("--simulate", "1", "--public-metrics")
    assert public.get("/metrics", auth=anonymous).status_code == 200
    problem(public.get("/api/v1/drives", auth=anonymous), 401)
