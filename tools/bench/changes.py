"""PUT of a desired power state beside the durable commits that it needs."""

import json
import os
import re
import sqlite3
import tempfile
import time

import load
from load import median
from report import check, note, table, write_script
from servers import BASIC, Daemon

MODEL = "core/sim/models/d5-p5336-61.44tb.json"
COMMIT = "x" * 300


# Every request is a change: the next state.
NEXT_STATE = """
wrk.method = "PUT"
wrk.headers["Content-Type"] = "application/json"
local n = 0
request = function()
	n = n + 1
	return wrk.format(nil, nil, nil, '{"state":' .. n % 3 .. '}')
end
"""


def quick_model(o):
    """The default drive, changing its state in no time."""
    with open(MODEL) as f:
        model = json.load(f)
    for state in model["states"]:
        state["entry_latency_us"] = state["exit_latency_us"] = 0
    path = os.path.join(o.dir, "model.json")
    with open(path, "w") as f:
        json.dump(model, f)
    return path


def commit_times_ms(directory, seconds):
    """Durable commits of one small row, as SQLite does them for the control store."""
    times = []
    with tempfile.TemporaryDirectory(dir=directory) as d:
        db = sqlite3.connect(os.path.join(d, "probe.db"), isolation_level=None)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT)")
        # A log that does not grow any more, as in a store that is in use.
        db.execute("PRAGMA synchronous = OFF")
        for _ in range(1000):
            db.execute("INSERT INTO t (x) VALUES (?)", (COMMIT,))
        db.execute("PRAGMA synchronous = FULL")
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            began = time.perf_counter()
            db.execute("BEGIN IMMEDIATE")
            db.execute("INSERT INTO t (x) VALUES (?)", (COMMIT,))
            db.execute("COMMIT")
            times.append((time.perf_counter() - began) * 1e3)
        db.close()
    return sorted(times)


def at(times, percent):
    return times[min(len(times) - 1, len(times) * percent // 100)]


def commits(daemon):
    """How many the control store has had."""
    text = daemon.call("GET", "/metrics")[1].decode()
    return int(re.search(r"^drivewatt_db_commits_total (\d+)", text, re.M)[1])


def put_row(name, directory, script, model, o):
    puts, probes = [], []
    flags = ("--simulate-model-file", model, "--reconcile", "0", "--meter", "1h")
    with Daemon(os.path.join(directory, "data"), 24, *flags) as daemon:
        url = f"{daemon.url}/api/v1/drives/{daemon.settle(24)[0]}/power/desired"
        basic = {"Authorization": BASIC}
        load.run(url, 1, o.seconds, basic, script)
        before = commits(daemon)
        for _ in range(o.rounds):
            note(f"changes, {name}")
            probes.append(commit_times_ms(directory, o.seconds))
            puts.append(load.run(url, 1, o.seconds, basic, script))
            check("PUT", puts[-1])
        each = round((commits(daemon) - before) / sum(r.count for r in puts), 1)
    put = [median(r.percentile_ms(p) for r in puts) for p in (50, 99)]
    probe = [median(at(t, p) for t in probes) for p in (50, 99)]
    return (
        name, *(f"{v:.2f}" for v in put), f"{each:g}", *(f"{v:.2f}" for v in probe),
        f"{put[0] - each * probe[0]:.2f}", f"{put[1] - each * probe[1]:.2f}",
        f"{median(r.per_s for r in puts):.0f}",
    )


def measure_put(o):
    rows = [("PUT …/power/desired, one client", "p50 ms", "p99 ms", "commits", "commit p50 ms",
             "commit p99 ms", "over p50", "over p99", "changes/s")]
    script = write_script(o, "put.lua", NEXT_STATE)
    model = quick_model(o)
    for name, parent in (("data directory on disk", o.dir), ("in memory", "/dev/shm")):
        with tempfile.TemporaryDirectory(prefix="drivewatt-bench-", dir=parent) as d:
            os.chmod(d, 0o755)
            rows.append(put_row(name, d, script, model, o))
    table(*rows)
