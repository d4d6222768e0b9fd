"""GET: from the cache beside bare libmicrohttpd, and made anew."""

import json
import os
import threading
import time

import load
from load import median
from report import check, kilo, note, spread, table, write_script
from servers import BASIC, Bare, Daemon

DRIVES = 240
GZIP = {"Accept-Encoding": "gzip"}
# Nothing changes by itself, and 1,024 connections of the load leave room for the measurer's own.
STILL = ("--reconcile", "0", "--health", "1h", "--rescan", "0", "--max-connections", "2048")


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


def on_still_drives(measure):
    def run(o):
        with Daemon(os.path.join(o.dir, measure.__name__), DRIVES, *STILL) as daemon:
            measure(daemon, daemon.settle(DRIVES)[0], o)
    return run


cached, modes, uncached = map(on_still_drives, (measure_cached, measure_modes, measure_uncached))
