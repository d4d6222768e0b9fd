"""wrk, the load generator: one run, read back."""

import re
import statistics
import subprocess

from servers import cpu_s

UNITS = {"us": 1e-3, "ms": 1, "s": 1e3, "m": 60e3}


class Load:
    """What one run of wrk saw."""

    def __init__(self, text):
        self.text = text
        self.per_s = float(re.search(r"Requests/sec:\s+([\d.]+)", text)[1])
        self.count = int(re.search(r"(\d+) requests in", text)[1])
        refused = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
        broken = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)",
                           text)
        self.refused = int(refused[1]) if refused else 0
        self.broken = sum(map(int, broken.groups())) if broken else 0
        self.cpu_us = None

    def percentile_ms(self, percent):
        value, unit = re.search(rf"^\s+{percent}%\s+([\d.]+)(us|ms|s|m)$", self.text, re.M).groups()
        return float(value) * UNITS[unit]


def run(url, connections, seconds, headers=None, script=None, pid=None, threads=2):
    """pid: of the server, whose processor time is measured too."""
    command = ["wrk", "--latency", "-t", str(min(threads, connections)), "-c", str(connections),
               "-d", str(seconds)]
    for name, value in (headers or {}).items():
        command += ["-H", f"{name}: {value}"]
    if script:
        command += ["-s", script]
    before_s = cpu_s(pid) if pid else 0
    out = subprocess.run(command + [url], capture_output=True, text=True, check=True).stdout
    load = Load(out)
    if pid and load.count:
        load.cpu_us = (cpu_s(pid) - before_s) * 1e6 / load.count
    return load


def median(values):
    return statistics.median(values)
