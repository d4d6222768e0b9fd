"""How long a start takes, and what memory is taken."""

import contextlib
import os
import socket
import time

import load
from answers import DRIVES, EVER_NEW, GZIP
from report import note, spread, table, write_script
from servers import BASIC, Daemon, memory_mb


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
    return (f"{drives} simulated drives", cell(rest), cell(memory_mb(daemon.pid)))


def measure_memory(o):
    rows = [("RSS / PSS of both processes, MB", "at rest", "after load")]
    for drives in (24, DRIVES):
        note(f"memory with {drives} drives")
        with Daemon(os.path.join(o.dir, f"memory-{drives}"), drives) as daemon:
            rows.append(memory_row(daemon, drives, o))
    table(*rows)
    measure_slow(o)


# --- clients that take their time -----------------------------------------------------------------

CLIENTS = 1000
LINE = "{} HTTP/1.1\r\nHost: bench\r\nAuthorization: " + BASIC + "\r\n"


def idle(s, drive):
    """One answer, then nothing."""
    s.sendall(LINE.format(f"GET /api/v1/drives/{drive}").encode() + b"\r\n")
    s.recv(4096)


def send_slowly(s, drive):
    """Most of a body as large as one may be."""
    head = LINE.format("POST /api/v1/power-changes") + "Content-Type: application/json\r\n"
    s.sendall((head + "Content-Length: 65536\r\n\r\n").encode() + b" " * 60000)


def read_slowly(s, drive):
    """The long list, of which nothing is read."""
    s.sendall(LINE.format(f"GET /api/v1/drives?limit={DRIVES}").encode() + b"\r\n")


@contextlib.contextmanager
def clients(url, act, drive):
    host, port = url.removeprefix("http://").split(":")
    with contextlib.ExitStack() as stack:
        for _ in range(CLIENTS):
            s = stack.enter_context(socket.socket())
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.connect((host, int(port)))
            act(s, drive)
        time.sleep(1)
        yield


def slow_row(name, act, o):
    """A daemon of its own, and a client in a hurry."""
    headers = {"Authorization": BASIC}
    note(f"1,000 clients: {name}")
    data = os.path.join(o.dir, f"slow-{act.__name__}")
    with Daemon(data, DRIVES, "--max-connections", "2048") as daemon:
        drive = daemon.settle(DRIVES)[0]
        url = f"{daemon.url}/api/v1/drives/{drive}/power"
        before = memory_mb(daemon.pid)
        runs = [load.run(url, 4, o.seconds, headers) for _ in range(o.few)]
        with clients(daemon.url, act, drive):
            memory = memory_mb(daemon.pid)
            slow = [load.run(url, 4, o.seconds, headers) for _ in range(o.few)]
    return (name, cell(memory), cell([b - a for a, b in zip(before, memory)]),
            spread([r.percentile_ms(99) for r in runs]),
            spread([r.percentile_ms(99) for r in slow]))


def measure_slow(o):
    rows = [("1,000 other clients", "RSS / PSS, MB", "more than before",
             "GET p99 ms without them", "GET p99 ms")]
    kinds = (("idle", idle), ("60 kB of a body of 64 KiB sent", send_slowly),
             ("a list of 170 kB not read", read_slowly))
    rows += [slow_row(name, act, o) for name, act in kinds]
    table(*rows)
