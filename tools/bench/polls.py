"""How many BMCs can be polled, and what that costs."""

import json
import os
import re
import subprocess
import time

from load import median
from report import note, spread, table
from servers import BASIC, Daemon, Server, cpu_s, memory_mb

BMCS, MANY = 1000, 10000
FASTEST = "100ms"  # ten times a second: more than two cores can do for 1,000 BMCs
USUAL_S = 10
PATIENCE_S = 240


class Fleet(Server):
    """Thousands of BMCs in one process, each on an address of its own."""

    def __init__(self, program):
        self.process = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port, self.fingerprint = self.process.stdout.readline().split()

    def stop(self):
        self.process.stdin.close()
        self.process.wait(30)

    def settings(self, n):
        return {"url": f"https://127.1.{n // 250}.{n % 250 + 1}:{self.port}",
                "username": "root", "password": "calvin",
                "tls": {"verify": "pin", "fingerprint_sha256": self.fingerprint}}


def add_hosts(daemon, fleet, count):
    connection = daemon.connect()
    headers = {"Authorization": BASIC, "Content-Type": "application/json"}
    for n in range(count):
        body = json.dumps({"name": f"bmc-{n}", "bmc": fleet.settings(n)})
        connection.request("POST", "/api/v1/hosts", body, headers)
        answer = connection.getresponse()
        data = answer.read()
        if answer.status != 201:
            raise SystemExit(f"host {n}: {answer.status} {data[:300]}")
    connection.close()


def counters(daemon):
    """(polls, failures) so far."""
    text = daemon.call("GET", "/metrics")[1].decode()
    return [int(re.search(rf"^drivewatt_bmc_{name}_total (\d+)$", text, re.M)[1])
            for name in ("polls", "failures")]


def wait_for_polls(daemon, wanted):
    deadline = time.monotonic() + PATIENCE_S
    while counters(daemon)[0] < wanted:
        if time.monotonic() > deadline:
            raise SystemExit(f"{counters(daemon)} polls and failures, {wanted} polls wanted")
        time.sleep(0.5)


def watch(daemon, seconds):
    """Polls a second, processor time a second, failures."""
    polls, failures = counters(daemon)
    began, cpu = time.monotonic(), cpu_s(daemon.pid)
    time.sleep(seconds)
    more_polls, more_failures = counters(daemon)
    passed = time.monotonic() - began
    return ((more_polls - polls) / passed, (cpu_s(daemon.pid) - cpu) / passed,
            more_failures - failures)


def measure_beside_curl(o, fleet):
    ours, bare, our_us, bare_us = [], [], [], []
    with Daemon(os.path.join(o.dir, "polls"), 1, "--meter", FASTEST) as daemon:
        add_hosts(daemon, fleet, BMCS)
        wait_for_polls(daemon, 3 * BMCS)
        for _ in range(o.few):
            per_s, cpu, failed = watch(daemon, 5 * o.seconds)
            if failed:
                note(f"{failed} polls failed")
            ours.append(per_s)
            our_us.append(cpu * 1e6 / per_s)
    for _ in range(o.few):
        out = subprocess.run([o.bare_curl, fleet.port, str(BMCS), str(5 * o.seconds)],
                             capture_output=True, text=True, check=True).stdout
        bare.append(float(out.split()[0]))
        bare_us.append(float(out.split()[1]))
    table(("1,000 BMCs over TLS", "polls/s", "µs of processor time a poll"),
          ("drivewatt", spread(ours, "{:.0f}"), spread(our_us, "{:.0f}")),
          ("libcurl alone", spread(bare, "{:.0f}"), spread(bare_us, "{:.0f}")),
          ("ratio", f"{median(ours) / median(bare):.2f}", ""))


def measure_many(o, fleet, count):
    with Daemon(os.path.join(o.dir, "many"), 1, "--meter", f"{USUAL_S}s") as daemon:
        time.sleep(2)
        pss = memory_mb(daemon.pid)[1]
        add_hosts(daemon, fleet, count)
        wait_for_polls(daemon, 2 * count)
        per_s, cpu, failed = watch(daemon, 3 * USUAL_S)
        more_pss = memory_mb(daemon.pid)[1]
    table((f"BMCs over TLS, every {USUAL_S} s", "polls/s", "failed", "processors", "KiB a BMC (PSS)"),
          (f"{count:,}", f"{per_s:.0f}", str(failed), f"{cpu:.2f}",
           f"{(more_pss - pss) * 1e6 / 1024 / count:.0f}"))


def measure_polls(o):
    with Fleet(o.fleet) as fleet:
        measure_beside_curl(o, fleet)
        measure_many(o, fleet, BMCS)
        measure_many(o, fleet, MANY)
