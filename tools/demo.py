#!/usr/bin/python3
"""The main job by itself: 24 simulated drives, three power states, reading and writing.

Starts a daemon of its own on loopback, asks it over HTTP only, prints the measured table and
stops it. Nothing printed was put in: throughput is what fio moved, watts are what the simulated
meter showed meanwhile.
"""

import base64
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

DRIVES = 24
RUNTIME_S = int(os.environ.get("DEMO_RUNTIME_S", "12"))
RAMP_S = 3
FINAL = ("completed", "failed", "cancelled", "interrupted")


class Client:
    def __init__(self, url, password):
        self.url = url
        self.auth = "Basic " + base64.b64encode(f"admin:{password}".encode()).decode()

    def call(self, method, path, body=None):
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.url + path, data=data, method=method)
        request.add_header("Authorization", self.auth)
        if data:
            request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer), answer.headers
        except urllib.error.HTTPError as e:
            sys.exit(f"{method} {path}: {e.code} {e.read().decode()}")

    def get(self, path):
        return self.call("GET", path)[0]


def start(data_dir, password):
    command = [
        os.environ["DRIVEWATTD"], "--listen", "127.0.0.1:0", "--data-dir", data_dir,
        "--simulate", str(DRIVES), "--settle", "3s", "--log-level", "error",
    ]
    env = {**os.environ, "DRIVEWATT_ADMIN_PASSWORD": password}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=env, text=True)
    for line in process.stdout:
        if line.startswith("drivewattd ready on "):
            return process, line.split()[-1]
    sys.exit("drivewattd did not start")


def show_drives(client):
    drives = client.get("/api/v1/drives")["items"]
    first = drives[0]
    power = client.get(first["href"] + "/power")
    states = ", ".join(f"PS{s['state']} {s['max_w']:g} W" for s in power["states"])
    print(f"{len(drives)} simulated drives, {first['model']}: {states}")
    desired = client.call("PUT", first["href"] + "/power/desired", {"state": 1})[0]
    print(f"PUT state 1 on {first['name']}: observed {desired['observed_state']}, "
          f"{'in sync' if desired['in_sync'] else 'not in sync'}")
    client.call("PUT", first["href"] + "/power/desired", {"state": 0})
    return [d["id"] for d in drives]


def progress(text):
    if sys.stderr.isatty():
        sys.stderr.write("\r" + text.ljust(60) + ("" if text else "\r"))
        sys.stderr.flush()


def run(client, drives, workload, state):
    body = {"drives": drives, "workload": workload, "runtime_s": RUNTIME_S, "ramp_s": RAMP_S}
    if state is not None:
        body["power_state"] = state
    path = client.call("POST", "/api/v1/benchmarks", body)[1]["Location"]
    while True:
        r = client.get(path)
        label = f"PS{state}" if state is not None else "idle"
        progress(f"  {workload} {label}: {r['state']} {r['progress']:.0%}")
        if r["state"] in FINAL:
            progress("")
            if r["state"] != "completed":
                sys.exit(f"{workload} {label} {r['state']}: {r['reason']}")
            return r["result"]
        time.sleep(0.5)


COLUMNS = "{:<20}{:>10}{:>8}{:>9}{:>11}{:>11}{:>13}{:>9}"


def figure(v, form):
    return "-" if v is None else format(v, form)


def per_drive(power, kind):
    return next((b["per_drive_w"] for b in power["baselines"] if b["kind"] == kind), None)


def row(name, result):
    total, power, efficiency = result["total"], result["power"], result["efficiency"]
    moved = total["read"]["bytes_per_s"] + total["write"]["bytes_per_s"]
    above = efficiency["above_baseline"] or {}
    print(COLUMNS.format(
        name,
        figure(power["system_w"]["mean"] if power["system_w"] else None, ".0f"),
        figure(moved / 1e9 if moved else None, ".1f"),
        figure(power["uncertainty_w"], ".1f"),
        figure(per_drive(power, "idle_with_drives"), ".2f"),
        figure(per_drive(power, "no_drives"), ".2f"),
        figure(above.get("j_per_gb"), ".1f"),
        figure((efficiency["system"] or {}).get("iops_per_w"), ".0f"),
    ))
    for warning in result["fio"]["warnings"]:
        print(f"    {warning}")


def show_baselines(client):
    kinds = client.get("/api/v1/hosts/local/baseline")
    for kind, words in (("idle_with_drives", "idle"), ("no_drives", "no drives")):
        b = kinds[kind]
        print(COLUMNS.format(words, figure(b["w"] if b else None, ".0f"), *[""] * 6))


def main():
    password = secrets.token_urlsafe(12)
    data_dir = tempfile.mkdtemp(prefix="drivewatt-demo-", dir="/tmp")
    os.chmod(data_dir, 0o755)
    began = time.monotonic()
    process, url = start(os.path.join(data_dir, "data"), password)
    try:
        client = Client(url, password)
        print(f"drivewattd on {url}, everything below is simulated")
        drives = show_drives(client)
        host = client.get("/api/v1/hosts/local")
        print()
        print(COLUMNS.format("simulated", "system W", "GB/s", "± (k=2)", "W/drive", "W/drive",
                             "J/GB", "IOPS/W"))
        print(COLUMNS.format("", "", "", "W", "over idle", "over none", "over idle", "system"))
        show_baselines(client)
        for workload in ("seq-read-128k", "seq-write-128k"):
            for state in (0, 1, 2):
                row(f"{workload} PS{state}", run(client, drives, workload, state))
        history = client.get(f"/api/v1/hosts/{host['id']}/energy?from=-10m&step=10s")
        total = history["total"]
        print(f"\nthe host's history over that time: {total['energy_kwh']:.4f} kWh in "
              f"{total['covered_s']:.0f} s, {history['quality']}")
        print(f"done in {time.monotonic() - began:.0f} s")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        shutil.rmtree(data_dir, ignore_errors=True)


if __name__ == "__main__":
    main()
