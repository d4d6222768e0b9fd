"""Measures drivewattd and prints the tables of docs/performance.md.

What is compared is measured in turns within one run (A B A B …), and medians are told, since a
figure means something only beside the other one.
"""

import argparse
import json
import os
import socket
import sqlite3
import tempfile
import threading
import time

import load
from load import median
from servers import BASIC, Bare, Daemon, memory_mb

DRIVES = 240
GZIP = {"Accept-Encoding": "gzip"}
MODEL = "core/sim/models/d5-p5336-61.44tb.json"
COMMIT = "x" * 300
# Nothing changes by itself, and 1,024 connections of the load leave room for the measurer's own.
STILL = ("--reconcile", "0", "--health", "1h", "--rescan", "0", "--max-connections", "2048")


def note(text):
    """Progress, to the terminal alone."""
    os.write(2, f"  {text}\n".encode())


def table(*rows):
    print("| " + " | ".join(rows[0]) + " |")
    print("|" + "---|" * len(rows[0]))
    for row in rows[1:]:
        print("| " + " | ".join(row) + " |")
    print(flush=True)


def kilo(per_s):
    return f"{per_s / 1000:.1f}k"


def spread(values, form="{:.2f}"):
    """Median, and in brackets the lowest and highest."""
    return f"{form.format(median(values))} ({form.format(min(values))}–{form.format(max(values))})"


def check(what, run):
    if run.refused or run.broken:
        note(f"{what}: {run.refused} refused, {run.broken} broken")


# --- answers from the cache -----------------------------------------------------------------------

def compare(daemon, bare, path, headers, connections, o):
    """Rounds of (drivewattd, bare)."""
    rounds = []
    for _ in range(o.rounds):
        pair = []
        for server in (daemon, bare):
            run = load.run(server.url + path, connections, o.seconds, headers, pid=server.pid)
            check(f"{path} at {connections}", run)
            pair.append(run)
        rounds.append(pair)
    return rounds


def cached_row(name, connections, rounds):
    ours, bare = zip(*rounds)
    return (
        name, f"{connections:,}",
        kilo(median(r.per_s for r in ours)), kilo(median(r.per_s for r in bare)),
        spread([a.per_s / b.per_s for a, b in rounds]),
        f"{median(r.cpu_us for r in ours):.1f}", f"{median(r.cpu_us for r in bare):.1f}",
        spread([b.cpu_us / a.cpu_us for a, b in rounds]),
    )


def make_token(daemon):
    body = daemon.call("POST", "/api/v1/tokens", {"name": "bench", "role": "ReadOnly"})[1]
    return "Bearer " + json.loads(body)["token"]


def measure_cached(daemon, drive, o):
    basic = {"Authorization": BASIC}
    bearer = {"Authorization": make_token(daemon)}
    one, whole = f"/api/v1/drives/{drive}", f"/api/v1/drives?limit={DRIVES}"
    cases = [
        ("one drive", one, basic, (32, 128, 1024)),
        ("one drive, token", one, bearer, (128,)),
        ("list of 240", whole, basic, (32, 128, 1024)),
        ("list of 240, gzip", whole, {**basic, **GZIP}, (32, 128, 1024)),
    ]
    rows = [("cached GET", "connections", "drivewatt/s", "bare/s", "ratio", "drivewatt µs",
             "bare µs", "ratio of µs")]
    for name, path, headers, counts in cases:
        file = os.path.join(o.dir, "answer")
        size = daemon.save_answer(path, file, headers)
        with Bare(o.bare, file) as bare:
            for connections in counts:
                note(f"{name}, {size} bytes, {connections} connections")
                rounds = compare(daemon, bare, path, headers, connections, o)
                rows.append(cached_row(f"{name}, {size:,} B", connections, rounds))
    table(*rows)


def mode_cell(url, connections, o):
    runs = [load.run(url, connections, o.seconds, {"Authorization": BASIC})
            for _ in range(o.few)]
    return spread([r.per_s / 1000 for r in runs], "{:.1f}k")


def measure_modes(daemon, drive, o):
    """Why the listeners poll: epoll stalls where a thread has a multiple of 128 connections."""
    counts = (127, 128, 1000)
    rows = [("bare libmicrohttpd, one drive", *(f"{c:,} connections/s" for c in counts))]
    file = os.path.join(o.dir, "answer")
    daemon.save_answer(f"/api/v1/drives/{drive}", file, {})
    for threads, mode in ((1, "poll"), (1, "epoll"), (2, "poll"), (2, "epoll")):
        note(f"bare {mode}, {threads} threads")
        with Bare(o.bare, file, mode, threads) as bare:
            rows.append((f"{mode}, {threads} thread{'s'[:threads - 1]}",
                         *(mode_cell(bare.url, c, o) for c in counts)))
    table(*rows)


# --- answers that are made anew -------------------------------------------------------------------

def write_script(o, name, text):
    path = os.path.join(o.dir, name)
    with open(path, "w") as f:
        f.write(text)
    return path


# More different targets than the cache can hold, each asked for again after all others.
EVER_NEW = """
local n = 0
request = function()
	n = n + 1
	local more = n % 1520 < 760 and "" or "&in_sync=true"
	return wrk.format("GET", "/api/v1/drives?limit=" .. (240 + n % 760) .. more)
end
"""


class Relabeller(threading.Thread):
    """Changes a drive's labels, and so the version of the list, while its block runs."""

    def __init__(self, server, drive):
        super().__init__()
        self.server, self.path = server, f"/api/v1/drives/{drive}"
        self.count, self.over = 0, False

    def __enter__(self):
        self.began = time.monotonic()
        self.start()
        return self

    def __exit__(self, *_):
        self.over = True
        self.join()
        self.seconds = time.monotonic() - self.began

    def run(self):
        connection = self.server.connect()
        headers = {"Authorization": BASIC, "Content-Type": "application/json"}
        while not self.over:
            body = json.dumps({"labels": {"n": str(self.count)}})
            connection.request("PATCH", self.path, body, headers)
            connection.getresponse().read()
            self.count += 1
        connection.close()


def rate_row(name, connections, runs, extra=""):
    return (name, f"{connections:,}", spread([r.per_s / 1000 for r in runs], "{:.1f}k"),
            f"{median(r.cpu_us for r in runs):.0f}", extra)


def measure_uncached(daemon, drive, o):
    basic = {"Authorization": BASIC}
    rows = [("made anew", "connections", "requests/s", "drivewatt µs", "")]
    def rounds(path, connections, headers, script=None):
        return [load.run(daemon.url + path, connections, o.seconds, headers, script, daemon.pid)
                for _ in range(o.few)]
    power = f"/api/v1/drives/{drive}/power"
    for connections in (32, 128):
        note(f"power, {connections} connections")
        rows.append(rate_row("one drive's power", connections, rounds(power, connections, basic)))
    note("lists, each made anew")
    script = write_script(o, "lists.lua", EVER_NEW)
    rows.append(rate_row("list of 240", 32, rounds("", 32, basic, script)))
    rows.append(rate_row("list of 240, gzip", 32, rounds("", 32, {**basic, **GZIP}, script)))
    note("a list that changes")
    with Relabeller(daemon, drive) as changes:
        runs = rounds(f"/api/v1/drives?limit={DRIVES}", 32, basic)
    per_s = changes.count / changes.seconds
    rows.append(rate_row("list of 240 while it changes", 32, runs, f"{per_s:.0f} changes/s"))
    table(*rows)


# --- changes --------------------------------------------------------------------------------------

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


def put_row(name, directory, script, model, o):
    puts, commits = [], []
    with Daemon(os.path.join(directory, "data"), 24, "--simulate-model-file", model) as daemon:
        url = f"{daemon.url}/api/v1/drives/{daemon.settle(24)[0]}/power/desired"
        basic = {"Authorization": BASIC}
        load.run(url, 1, o.seconds, basic, script)
        for _ in range(o.rounds):
            note(f"changes, {name}")
            commits.append(commit_times_ms(directory, o.seconds))
            puts.append(load.run(url, 1, o.seconds, basic, script))
            check("PUT", puts[-1])
    return (
        name,
        *(f"{median(r.percentile_ms(p) for r in puts):.2f}" for p in (50, 99)),
        *(f"{median(at(t, p) for t in commits):.2f}" for p in (50, 99)),
        f"{median(r.per_s for r in puts):.0f}",
    )


def measure_put(o):
    rows = [("PUT …/power/desired, one client", "p50 ms", "p99 ms", "commit p50 ms",
             "commit p99 ms", "changes/s")]
    script = write_script(o, "put.lua", NEXT_STATE)
    model = quick_model(o)
    for name, parent in (("data directory on disk", o.dir), ("in memory", "/dev/shm")):
        with tempfile.TemporaryDirectory(prefix="drivewatt-bench-", dir=parent) as d:
            os.chmod(d, 0o755)
            rows.append(put_row(name, d, script, model, o))
    table(*rows)


# --- start and memory -----------------------------------------------------------------------------

def measure_start(o):
    rows = [("until ready, ms", "first start", "further starts")]
    for drives in (24, DRIVES):
        first, later = [], []
        for i in range(o.rounds):
            note(f"starts with {drives} drives")
            data = os.path.join(o.dir, f"start-{drives}-{i}")
            for times in (first, later, later):
                with Daemon(data, drives) as daemon:
                    times.append(daemon.start_s * 1e3)
        rows.append((f"{drives} simulated drives", spread(first, "{:.0f}"),
                     spread(later, "{:.0f}")))
    table(*rows)


def open_idle(url, count):
    """Connections that have had one answer each and are kept."""
    host, port = url.removeprefix("http://").split(":")
    kept = []
    for _ in range(count):
        s = socket.create_connection((host, int(port)))
        s.sendall(b"GET /healthz HTTP/1.1\r\nHost: bench\r\n\r\n")
        s.recv(4096)
        kept.append(s)
    return kept


def cell(memory):
    return f"{memory[0]:.1f} / {memory[1]:.1f}"


def memory_row(daemon, drives, o):
    daemon.settle(drives)
    rest = memory_mb(daemon.pid)
    for headers in ({"Authorization": BASIC}, {"Authorization": BASIC, **GZIP}):
        load.run(f"{daemon.url}/api/v1/drives?limit={drives}", 64, o.seconds, headers)
    script = write_script(o, "lists.lua", EVER_NEW)
    load.run(daemon.url, 64, o.seconds, {"Authorization": BASIC}, script)
    time.sleep(1)
    after = memory_mb(daemon.pid)
    kept = open_idle(daemon.url, 1000)
    idle = memory_mb(daemon.pid)
    for s in kept:
        s.close()
    more = [b - a for a, b in zip(after, idle)]
    return (f"{drives} simulated drives", cell(rest), cell(after), cell(more))


def measure_memory(o):
    rows = [("RSS / PSS of both processes, MB", "at rest", "after load", "per 1,000 connections")]
    for drives in (24, DRIVES):
        note(f"memory with {drives} drives")
        with Daemon(os.path.join(o.dir, f"memory-{drives}"), drives) as daemon:
            rows.append(memory_row(daemon, drives, o))
    table(*rows)


def main():
    parser = argparse.ArgumentParser(prog="make bench ARGS=")
    parser.add_argument("dir", help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="one short round of each")
    o = parser.parse_args()
    o.rounds, o.few = (1, 1) if o.quick else (5, 3)
    o.seconds = 1
    o.bare = os.path.join(o.dir, "bare_mhd")
    os.chmod(o.dir, 0o755)
    began = time.monotonic()
    with Daemon(os.path.join(o.dir, "data"), DRIVES, *STILL) as daemon:
        drive = daemon.settle(DRIVES)[0]
        measure_cached(daemon, drive, o)
        measure_modes(daemon, drive, o)
        measure_uncached(daemon, drive, o)
    measure_put(o)
    measure_start(o)
    measure_memory(o)
    note(f"done in {time.monotonic() - began:.0f} s, load {os.getloadavg()[0]:.1f}")


main()
