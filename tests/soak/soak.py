"""A working day's load for a while: nothing grows, and no sample is lost.

Hundreds of BMCs are read, many streams followed, drives set, benchmarks run, histories and lists
asked for. Meanwhile the daemon's memory, descriptors and write-ahead logs are looked at.
"""

import contextlib
import glob
import json
import os
import random
import statistics
import subprocess
import sys
import threading
import time

import requests
from fleet import address
from raw import Connection
from service import Service, wait_until

HERE = os.path.dirname(os.path.abspath(__file__))
WAIT_S = 120
LOOK_EVERY_S = 2
WAL_MAX_BYTES = 64 << 20
IDLE = {"workload": "idle", "runtime_s": 1, "ramp_s": 0}


class Fleet:
    """The BMCs, as a child."""

    def __init__(self, count):
        self.child = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "fleet.py"), str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.port = json.loads(self.child.stdout.readline())["port"]
        self.lock = threading.Lock()

    def url(self, n):
        return f"http://{address(n)}:{self.port}"

    def served(self, n):
        with self.lock:
            self.child.stdin.write(f"served {n}\n")
            self.child.stdin.flush()
            return json.loads(self.child.stdout.readline())

    def close(self):
        self.child.stdin.close()
        self.child.stdout.close()
        self.child.wait()


class Look:
    """What the daemon takes up at one instant."""

    def __init__(self, service):
        self.at = time.monotonic()
        pids = [service.process.pid, *children(service.process.pid)]
        self.rss_bytes = sum(memory(pid) for pid in pids)
        self.descriptors = sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in pids)
        self.wal_bytes = sum(os.path.getsize(f) for f in glob.glob(service.data_dir + "/*.db-wal"))

    def __str__(self):
        return f"{self.rss_bytes / 1e6:.1f} MB, {self.descriptors} descriptors, {self.wal_bytes / 1e6:.1f} MB of logs"


def children(parent):
    """Of the daemon, its helper alone: fio comes and goes."""
    with open(f"/proc/{parent}/task/{parent}/children", encoding="ascii") as f:
        return [int(pid) for pid in f.read().split()]


def memory(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")


class Soak:
    def __init__(self, hosts, streams):
        self.fleet = Fleet(hosts)
        self.service = Service(
            "--simulate", "24", "--meter", "1s", "--max-per-address", "0", "--settle", "50ms",
            "--max-streams", str(4 * streams))  # fmt: skip
        self.over = threading.Event()
        self.failures = []
        self.hosts, self.streams = hosts, streams
        self.heard = [0] * streams
        self.done = dict.fromkeys(("queries", "changes", "runs"), 0)

    # -- load --------------------------------------------------------------------------------------

    def session(self):
        s = requests.Session()
        s.headers["Authorization"] = "Bearer " + self.token
        return s

    def ask(self, session, method, path, json=None, statuses=(200, 201, 202, 204)):
        r = session.request(method, self.service.url + path, json=json, timeout=WAIT_S)
        assert r.status_code in statuses, f"{method} {path}: {r.status_code} {r.text[:500]}"
        return r

    def begin(self):
        s = self.service.start()
        self.token = s.post("/api/v1/tokens", {"name": "soak"}).json()["token"]
        self.drives = [d["id"] for d in wait_until(lambda: (lambda d: d if len(d) == 24 else None)(s.drives()), WAIT_S)]
        self.ids = []
        for n in range(self.hosts):
            bmc = {"url": self.fleet.url(n), "username": "root", "password": "calvin", "allow_plaintext": True}
            self.ids.append(self.ask(self.session(), "POST", "/api/v1/hosts", {"name": f"h{n}", "bmc": bmc}).json()["id"])
        wait_until(self.all_read, WAIT_S, "a reading of every host")

    def all_read(self):
        r = self.ask(self.session(), "GET", "/metrics")
        return sum(line.startswith("drivewatt_host_power_watts{") for line in r.text.splitlines()) >= self.hosts

    def work(self, job, *args):
        rng = random.Random(f"{job.__name__}{args}")
        session = self.session()
        try:
            while not self.over.is_set():
                job(session, rng, *args)
        except Exception as e:  # noqa: BLE001
            self.failures.append(f"{job.__name__}: {e!r}")

    def query(self, session, rng):
        host, drive = rng.choice(self.ids), rng.choice(self.drives)
        path = rng.choice(
            (
                f"/hosts/{host}/energy?from=-1h",
                f"/hosts/{host}/energy?from=-10m&step=10s",
                f"/hosts/{host}/power",
                f"/series?host={host}",
                f"/drives/{drive}/power",
                "/hosts/local/energy?from=-24h&step=1h",
                "/hosts?limit=100",
                "/drives",
                "/events",
                "/benchmarks",
            )
        )
        self.ask(session, "GET", "/api/v1" + path, statuses=(200, 404) if "energy" in path else (200,))
        if rng.random() < 0.05:
            self.ask(session, "GET", "/metrics")
        self.done["queries"] += 1
        self.over.wait(0.02)

    def change(self, session, rng):
        drive = rng.choice(self.drives[4:])
        self.ask(session, "PUT", f"/api/v1/drives/{drive}/power/desired", {"state": rng.randrange(3)})
        self.done["changes"] += 1
        self.over.wait(0.05)

    def run(self, session, rng):
        body = {**IDLE, "drives": self.drives[:4], "power_state": rng.randrange(3)}
        path = self.ask(session, "POST", "/api/v1/benchmarks", body).headers["Location"]
        wait_until(lambda: self.ask(session, "GET", path).json()["ended_at"] or self.over.is_set(), WAIT_S, "the run's end")
        self.done["runs"] += 1

    def follow(self, _session, _rng, n):
        """Numbers ascend, whatever the stream tells."""
        last = 0
        with Connection(self.service.url, timeout_s=WAIT_S) as c:
            head = {"Accept": "text/event-stream", "Authorization": "Bearer " + self.token}
            c.request("GET", "/api/v1/events", head, credentials=False)
            assert c.fill() and c.pending.startswith(b"HTTP/1.1 200"), c.pending
            while not self.over.is_set() and c.fill():
                *lines, c.pending = c.pending.split(b"\n")
                for line in lines:
                    if line.startswith(b"id:"):
                        number = int(line[3:])
                        assert number > last, f"event {number} after {last}"
                        last = number
                        self.heard[n] += 1

    # -- looking -----------------------------------------------------------------------------------

    def watch(self, seconds, say):
        looks = []
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.failures:
            with contextlib.suppress(FileNotFoundError):  # a child that ended meanwhile
                looks.append(Look(self.service))
            if (len(looks) - 1) % max(1, int(seconds / LOOK_EVERY_S / 10)) == 0:
                say(f"{time.monotonic() - end + seconds:5.0f} s: {looks[-1]}", flush=True)
            self.over.wait(LOOK_EVERY_S)
        return looks

    def judge(self, looks):
        """The last third against the one before. Connections to BMCs come and go."""
        n = len(looks)
        parts = looks[n // 3 : n * 2 // 3], looks[n * 2 // 3 :]
        was, now = (statistics.median(x.rss_bytes for x in part) for part in parts)
        assert now <= was * 1.03 + 2e6, f"memory grew from {was / 1e6:.1f} to {now / 1e6:.1f} MB"
        was, now = (max(x.descriptors for x in part) for part in parts)
        assert now <= was * 1.25 + 8, f"descriptors grew from {was} to {now}"
        most = max(x.wal_bytes for x in looks)
        assert most <= WAL_MAX_BYTES, f"the logs grew to {most} bytes"

    def samples(self, host):
        """All values of a host's power, in order."""
        session = self.session()
        items = self.ask(session, "GET", f"/api/v1/series?host={host}").json()["items"]
        series = next(s for s in items if s["quantity"] == "power")
        path = f"/api/v1/series/{series['id']}/samples?from=-24h&limit=40000"
        values, cursor = [], ""
        while cursor is not None:
            page = self.ask(session, "GET", path + (f"&cursor={cursor}" if cursor else "")).json()
            values += [round(x["value"], 3) for x in page["items"]]
            cursor = page["next"]
        return values

    def check_samples(self, n):
        """Each value that the BMC told is kept, once and in order."""
        told = self.fleet.served(n)
        wait_until(lambda: self.samples(self.ids[n])[-1:] >= told[-1:], WAIT_S, "the last value")
        kept = self.samples(self.ids[n])[: len(told)]
        assert kept == [round(w, 3) for w in told], f"host {n}: {len(kept)} of {len(told)} values"

    def go(self, seconds, say):
        jobs = [(self.query,), (self.query,), (self.change,), (self.run,), *((self.follow, n) for n in range(self.streams))]
        threads = [threading.Thread(target=self.work, args=job) for job in jobs]
        for t in threads:
            t.start()
        try:
            looks = self.watch(seconds, say)
        finally:
            self.over.set()
            for t in threads:
                t.join()
        assert not self.failures, "\n".join(self.failures)
        say(f"{self.done}, {min(self.heard)} to {max(self.heard)} events a stream", flush=True)
        assert min(self.heard) > 0
        self.judge(looks)
        for n in random.Random(0).sample(range(self.hosts), min(self.hosts, 20)):
            self.check_samples(n)

    def close(self):
        try:
            self.service.close()
        finally:
            self.fleet.close()


def soak(seconds, hosts=500, streams=50, say=print):
    with contextlib.closing(Soak(hosts, streams)) as s:
        s.begin()
        s.go(seconds, say)
