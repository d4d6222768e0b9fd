"""What readers of event streams cost those who only ask."""

import contextlib
import multiprocessing
import os
import selectors
import socket
import threading
import time

import load
from report import note, spread, table
from servers import BASIC, Daemon

READERS = 1000
DRIVES = 24
# One account may have a quarter of the streams.
FLAGS = ("--max-connections", str(2 * READERS), "--max-streams", str(4 * READERS + 16), "--meter", "1s")


def read_all(address, query, count, open_, over):
    """READERS streams in one process: counts the blocks that come, but for comments."""
    selector = selectors.DefaultSelector()
    request = (f"GET /api/v1/events{query} HTTP/1.1\r\nHost: bench\r\nAccept: text/event-stream\r\n"
               f"Authorization: {BASIC}\r\n\r\n").encode()
    for _ in range(READERS):
        s = socket.create_connection(address)
        s.sendall(request)
        s.setblocking(False)
        selector.register(s, selectors.EVENT_READ)
    while not over.is_set():
        for key, _ in selector.select(0.5):
            data = key.fileobj.recv(65536)
            if not data:
                raise SystemExit("a stream has ended")
            with open_.get_lock():
                open_.value += data.count(b"HTTP/1.1 200")
            count.value += data.count(b"data: ")


@contextlib.contextmanager
def readers(daemon, query):
    host, port = daemon.url.removeprefix("http://").split(":")
    count, open_ = multiprocessing.Value("q", 0), multiprocessing.Value("q", 0)
    over = multiprocessing.Event()
    process = multiprocessing.Process(target=read_all, args=((host, int(port)), query, count, open_, over))
    process.start()
    deadline = time.monotonic() + 60
    while open_.value < READERS:
        if time.monotonic() > deadline or not process.is_alive():
            raise SystemExit(f"{open_.value} of {READERS} streams stand")
        time.sleep(0.1)
    yield count
    over.set()
    process.join()


class Changer(threading.Thread):
    """Makes one event a second, which each reader gets: a drive's labels change."""

    def __init__(self, daemon, drive):
        super().__init__(daemon=True)
        self.server, self.path, self.over = daemon, f"/api/v1/policies/{drive[:20]}", threading.Event()

    def run(self):
        n = 0
        while not self.over.wait(1):
            n += 1
            body = {"selector": {"model": f"none-{n}"}, "desired": {"state": n % 2}}
            self.server.call("PUT", self.path, body)


@contextlib.contextmanager
def changes(daemon, drive):
    thread = Changer(daemon, drive)
    thread.start()
    yield
    thread.over.set()
    thread.join()


def row(name, daemon, drive, o, count=None):
    url = f"{daemon.url}/api/v1/drives/{drive}/power"
    times, rates, began, before = [], [], time.monotonic(), count.value if count else 0
    for _ in range(o.rounds):
        run = load.run(url, 4, 3 * o.seconds, {"Authorization": BASIC}, pid=daemon.pid)
        times.append(run.percentile_ms(99))
        rates.append(run.per_s)
    told = (count.value - before) / (time.monotonic() - began) if count else 0
    return name, f"{told:,.0f}", spread(times, "{:.2f}"), spread([r / 1e3 for r in rates], "{:.1f}k")


def measure_streams(o):
    rows = [("readers", "deliveries/s", "GET p99 ms", "requests/s")]
    with Daemon(os.path.join(o.dir, "streams"), DRIVES, *FLAGS) as daemon:
        drive = daemon.settle(DRIVES)[0]
        note("streams")
        rows.append(row("none", daemon, drive, o))
        with readers(daemon, "") as count:
            rows.append(row(f"{READERS:,}, nothing happens", daemon, drive, o, count))
            with changes(daemon, drive):
                rows.append(row(f"{READERS:,}, an event a second", daemon, drive, o, count))
        with readers(daemon, "?samples=true") as count:
            rows.append(row(f"{READERS:,}, with samples", daemon, drive, o, count))
        rows.append(row("none any more", daemon, drive, o))
    table(*rows)
