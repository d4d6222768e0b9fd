"""What deploy/ brings for Prometheus and Grafana fits what the daemon shows."""

import json
import os
import re
import shutil
import subprocess

import pytest
from fakebmc import FakeBmc
from service import Service, wait_until

ROOT = os.path.join(os.path.dirname(__file__), "..", "..")
DASHBOARD = os.path.join(ROOT, "deploy", "grafana", "drivewatt.json")
RULES = os.path.join(ROOT, "deploy", "prometheus", "drivewatt.rules.yml")
EXAMPLE = os.path.join(ROOT, "deploy", "prometheus", "prometheus.yml")
PROMTOOL = os.path.join(os.environ.get("PROMETHEUS", "build/prometheus"), "usr/bin/promtool")
NAME = re.compile(r"\bdrivewatt_[a-z0-9_]+")


def promtool(*words):
    r = subprocess.run([PROMTOOL, *words], capture_output=True, text=True, timeout=60)
    assert r.returncode == 0, r.stdout + r.stderr
    return r.stdout


@pytest.fixture(scope="module")
def scrape():
    """Names and label names of a daemon with drives, and a host whose BMC tells all it can."""
    service = Service("--simulate", "2", "--meter", "200ms").start()
    try:
        with FakeBmc(vendor="dell10", plain=True) as bmc:
            settings = {"url": bmc.url, "username": bmc.username, "password": bmc.password}
            body = {"name": "dell", "bmc": {**settings, "allow_plaintext": True, "tls": {"verify": "none"}}}
            host = service.post("/api/v1/hosts", body).json()
            wait_until(lambda: service.json(host["href"] + "/power")["supplies"])
            wait_until(lambda: all(d["temperature_c"] for d in service.drives()))
            return service.get("/metrics").text
    finally:
        service.close()


@pytest.fixture(scope="module")
def families(scrape):
    return set(re.findall(r"^# TYPE (\S+)", scrape, re.M))


def labels_of(scrape, name):
    """The label names of a family's samples; None where it has none here."""
    lines = re.findall(rf"^{name}(?:\{{(.*)\}})? \S+$", scrape, re.M)
    return set(re.findall(r'([a-z_]+)="', " ".join(lines))) if lines else None


def expressions():
    """(where, PromQL) of dashboard and rules."""
    with open(DASHBOARD, encoding="utf-8") as f:
        panels = json.load(f)["panels"]
    for panel in panels:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"], target["legendFormat"]
    with open(RULES, encoding="utf-8") as f:
        for expr in re.findall(r"expr: (?:>-\n)?(.*(?:\n {10}\S.*)*)", f.read()):
            yield "rules", expr, ""


def test_every_name_is_shown(families):
    found = list(expressions())
    assert len(found) > 30
    for where, expr, _ in found:
        names = set(NAME.findall(expr))
        assert names - families == set(), f"{where}: {expr}"


def test_every_label_is_there(scrape):
    for where, expr, legend in expressions():
        known = {"instance", "job"}
        for name in NAME.findall(expr):
            known |= labels_of(scrape, name) or {"quality", "host", "drive", "name", "component", "source", "supply"}
        used = set(re.findall(r"\{\{(\w+)\}\}", legend)) | set(re.findall(r"(\w+)[!=]~?\"", expr))
        for group in re.findall(r"(?:by|on|group_left) \(([^)]*)\)", expr):
            used |= set(re.findall(r"\w+", group))
        assert used <= known, f"{where}: {expr} {legend}"


def test_sums_of_readings_are_by_quality():
    for where, expr, _ in expressions():
        if re.search(r"\bsum\b", expr) and re.search(r"_(watts|joules_total|celsius)", expr):
            assert re.search(r"sum by \([^)]*quality", expr) or 'quality' in expr.split("{")[-1], f"{where}: {expr}"


def test_the_rules_are_good():
    out = promtool("check", "rules", RULES)
    assert "SUCCESS" in out


def test_the_example_is_good(tmp_path):
    for path in (RULES, EXAMPLE):
        shutil.copy(path, tmp_path)
    text = (tmp_path / "prometheus.yml").read_text()
    for name in re.findall(r"/etc/prometheus/(\S+)", text):
        (tmp_path / name).write_text("x")
    (tmp_path / "prometheus.yml").write_text(text.replace("/etc/prometheus/", str(tmp_path) + "/"))
    assert "SUCCESS" in promtool("check", "config", "--syntax-only", str(tmp_path / "prometheus.yml"))


def test_an_alert_tells_simulated_from_real(tmp_path):
    """The rules themselves, run by promtool over made-up series."""
    shutil.copy(RULES, tmp_path)
    (tmp_path / "test.yml").write_text(json.dumps({
        "rule_files": ["drivewatt.rules.yml"],
        "tests": [{
            "interval": "1m",
            "input_series": [
                {"series": 'drivewatt_drive_wear_ratio{drive="a",quality="measured"}', "values": "0.95x10"},
                {"series": 'drivewatt_drive_wear_ratio{drive="b",quality="simulated"}', "values": "0.95x10"},
                {"series": 'drivewatt_host_power_watts{host="h",quality="bmc"}', "values": "400x10"},
                {"series": 'drivewatt_host_power_watts{host="i",quality="simulated"}', "values": "1000x10"},
            ],
            "alert_rule_test": [{
                "eval_time": "5m", "alertname": "DriveWornOut",
                "exp_alerts": [{
                    "exp_labels": {"drive": "a", "quality": "measured", "severity": "warning"},
                    "exp_annotations": {"summary": "drive a on  has used 95% of its endurance"},
                }],
            }],
            "promql_expr_test": [{
                "expr": "drivewatt:host_power_watts:sum", "eval_time": "5m",
                "exp_samples": [
                    {"labels": 'drivewatt:host_power_watts:sum{quality="bmc"}', "value": 400},
                    {"labels": 'drivewatt:host_power_watts:sum{quality="simulated"}', "value": 1000},
                ],
            }],
        }],
    }))
    promtool("test", "rules", str(tmp_path / "test.yml"))
