"""/metrics: Prometheus text that says what there is, and where it comes from."""

import re

import pytest
from service import Service, anonymous, problem, wait_until

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
    for name in ("up", "power_state", "in_sync", "temperature_celsius", "info"):
        rows = metrics.of("drivewatt_drive_" + name)
        assert {labels["drive"] for labels, _ in rows} == set(drives), name
        assert all(labels["simulated"] == "1" for labels, _ in rows)
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
    assert all(after.one(n) >= before.one(n) for n, kind in before.types.items() if kind == "counter")
    assert after.one("drivewatt_http_connections") >= 1
    assert after.one("drivewatt_db_control_healthy") == 1
    assert after.one("drivewatt_db_samples_healthy") == 1


def test_names_with_quotes_do_not_break_the_text(service):
    name = 'a "quoted" \\ name'
    assert service.patch("/api/v1/hosts/local", {"name": name}).status_code == 200
    ((labels, _),) = read(service).of("drivewatt_host_power_watts")
    assert labels["name"] == 'a \\"quoted\\" \\\\ name'


def test_version_and_uptime(service):
    ((labels, value),) = read(service).of("drivewatt_build_info")
    assert value == 1 and labels["version"] == service.json("/api/v1/system")["version"]
    assert read(service).one("drivewatt_uptime_seconds") > 0


def test_credentials_are_needed_unless_configured(service, start):
    problem(service.get("/metrics", auth=anonymous), 401)
    public = start("--simulate", "1", "--public-metrics")
    assert public.get("/metrics", auth=anonymous).status_code == 200
    problem(public.get("/api/v1/drives", auth=anonymous), 401)
