"""What drives and BMCs that do not answer cost everybody else."""

import contextlib
import os
import socket
import sys
import threading

import load
from changes import quick_model
from report import check, note, spread, table, write_script
from servers import BASIC, Daemon

sys.path.insert(0, "tests/http")
from bed import Bed  # noqa: E402

DRIVES, HUNG = 24, 8
BMCS = 8
JSON = {"Content-Type": "application/json"}

# States that the made-up and the simulated drives have.
NEXT_STATE = """
wrk.method = "PUT"
wrk.headers["Content-Type"] = "application/json"
local n = 0
request = function()
	n = n + 1
	return wrk.format(nil, nil, nil, '{"state":' .. n % 2 .. '}')
end
"""


class Wisher(threading.Thread):
    """Wishes one drive another state, over and over: at a hung one it is always waited for."""

    def __init__(self, daemon, drive):
        super().__init__(daemon=True)
        self.server, self.path = daemon, f"/api/v1/drives/{drive}/power/desired"
        self.over = threading.Event()

    def run(self):
        connection = self.server.connect()
        n = 0
        while not self.over.is_set():
            n += 1
            headers = {"Authorization": BASIC, **JSON}
            connection.request("PUT", self.path, f'{{"state":{n % 2}}}', headers)
            answer = connection.getresponse()
            answer.read()
            if answer.status == 503:
                self.over.wait(1)
        connection.close()


@contextlib.contextmanager
def wishers(daemon, drives):
    threads = [Wisher(daemon, drive) for drive in drives]
    for thread in threads:
        thread.start()
    yield
    for thread in threads:
        thread.over.set()
    for thread in threads:
        thread.join(30)


class DeafBmc:
    """Takes connections and says nothing."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://127.0.0.1:{self.socket.getsockname()[1]}"
        self.taken = []
        threading.Thread(target=self.take, daemon=True).start()

    def take(self):
        with contextlib.suppress(OSError):
            while True:
                self.taken.append(self.socket.accept()[0])

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


def row(name, daemon, drive, script, o):
    """p99 of three kinds of request, one after the other."""
    note(name)
    headers = {"Authorization": BASIC}
    cases = (("/power/desired", 1, script), ("", 4, None), ("/metrics", 4, None))
    paths = (f"/api/v1/drives/{drive}/power/desired", f"/api/v1/drives?limit={DRIVES}", "/metrics")
    cells = []
    for (_, connections, lua), path in zip(cases, paths):
        runs = [load.run(daemon.url + path, connections, o.seconds, headers, lua)
                for _ in range(o.few)]
        check(path, runs[-1])
        cells += [spread([r.percentile_ms(99) for r in runs])]
    return (name, *cells)


HEAD = ("PUT …/power/desired p99 ms", "list of 24 p99 ms", "/metrics p99 ms")
# Looked at often, so that what hangs is met often.
BUSY = ("--reconcile", "2s", "--health", "5s", "--rescan", "5s")


def find_drives(daemon):
    items = daemon.get(f"/api/v1/drives?limit={DRIVES}")["items"]
    if len(items) != DRIVES:
        raise SystemExit(f"{len(items)} of {DRIVES} made-up drives are there")
    return [i["id"] for i in sorted(items, key=lambda i: int(i["name"].removeprefix("nvme")))]


def measure_drives(o, script):
    rows = [("24 made-up NVMe drives", *HEAD)]
    bed = Bed(DRIVES)
    try:
        data = os.path.join(o.dir, "hung")
        with Daemon(data, DRIVES, *BUSY, bed=bed) as daemon:
            drives = find_drives(daemon)
            rows.append(row("all answer", daemon, drives[-1], script, o))
            for i in range(HUNG):
                bed.set(i, hang=1)
            with wishers(daemon, drives[:HUNG]):
                rows.append(row(f"{HUNG} hang, each with a request that waits", daemon, drives[-1],
                                script, o))
                for i in range(HUNG):
                    bed.set(i, hang=0)
            rows.append(row("all answer again", daemon, drives[-1], script, o))
    finally:
        bed.close()
    table(*rows)


def measure_bmcs(o, script):
    rows = [("24 simulated drives", *HEAD)]
    flags = ("--simulate-model-file", quick_model(o), "--meter", "500ms")
    with Daemon(os.path.join(o.dir, "deaf"), DRIVES, *flags) as daemon:
        drive = daemon.settle(DRIVES)[0]
        rows.append(row("no BMC", daemon, drive, script, o))
        deaf = [DeafBmc() for _ in range(BMCS)]
        for i, bmc in enumerate(deaf):
            settings = {"url": bmc.url, "username": "u", "password": "p", "tls": {"verify": "none"}}
            daemon.call("POST", "/api/v1/hosts", {"name": f"deaf{i}", "bmc": settings})
        rows.append(row(f"{BMCS} hosts whose BMC hangs", daemon, drive, script, o))
        if not all(bmc.taken for bmc in deaf):
            raise SystemExit("not all BMCs were asked")
        for bmc in deaf:
            bmc.close()
    table(*rows)


def measure_hung(o):
    script = write_script(o, "next.lua", NEXT_STATE)
    measure_bmcs(o, script)
    if os.geteuid() == 0:
        measure_drives(o, script)
    else:
        note("hung drives: the made-up ones need root")
