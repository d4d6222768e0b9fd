"""Rounds of kill -9 under load: what was acknowledged must be there after the restart.

Every object has one thread that changes it, so that at any instant it is known what the daemon has
acknowledged and what it was asked for last without having answered. After the restart either of the
two may be seen, and nothing else. Instants come from the seed; what is checked does not.
"""

import contextlib
import glob
import os
import random
import re
import signal
import sqlite3
import subprocess
import threading
import time

import requests
from bed import Bed
from service import Service, wait_until

WAIT_S = 60
FINAL = ("completed", "failed", "cancelled", "interrupted")
HELPER_GONE = "helper is gone"
LIGHT = {"pattern": "randread", "block_bytes": 65536, "iodepth": 1, "rate_bytes_per_s": 10**8}
QUICK = ("--settle", "50ms", "--reconcile", "300ms", "--rescan", "300ms", "--drive-timeout", "2s")


class Fact:
    """What is acknowledged of an object, and what may be true as well since it was asked for."""

    def __init__(self, value=None):
        self.value = value
        self.asked = []

    def ask(self, value):
        self.asked.append(value)

    def acknowledge(self):
        self.value, self.asked = self.asked[-1], []

    def refuse(self):
        self.asked.pop()

    def meet(self, seen, what):
        """Fails unless seen is one of these; from then on it is the one."""
        assert seen == self.value or seen in self.asked, f"{what} is {seen}, not {self.value} nor of {self.asked}"
        self.value, self.asked = seen, []


class Book:
    """All facts about one data directory, over all its rounds."""

    def __init__(self):
        self.desired = {}  # drive id → state or None
        self.labels = {}  # drive id → object
        self.tokens = {}  # id → Fact(True) while usable; .secret
        self.hosts = {}  # id → name, None when deleted
        self.runs = {}  # id → Fact(True) while not deleted
        self.ends = {}  # run id → final state that was shown


class Client:
    """One thread's connection; a lost one ends the thread's work."""

    def __init__(self, load):
        self.load = load
        self.url = load.house.service.url + "/api/v1"
        self.session = requests.Session()
        self.session.headers["Authorization"] = "Bearer " + load.house.token

    def __call__(self, method, path, json=None):
        r = self.session.request(method, self.url + path, json=json, timeout=WAIT_S)
        expected = r.status_code < 500 or (r.status_code == 503 and self.load.degraded)
        assert expected, f"{method} {path}: {r.status_code} {r.text}"
        return r


# -- load -------------------------------------------------------------------------------------------


class Load:
    """Threads that change and read until they are told to stop, or the daemon is gone."""

    def __init__(self, house, rng):
        self.house = house
        self.book = house.book
        self.over = threading.Event()
        self.running = threading.Event()  # some run has been seen running
        self.degraded = False  # the helper is being killed
        self.unreachable = False  # and its drives have been given up
        self.doomed = False
        self.failures = []
        jobs = [self.change_power, self.change_labels, self.change_tokens, self.change_hosts, self.run, self.run, self.read]
        self.threads = [
            threading.Thread(target=self.work, args=(job, i, random.Random(rng.random()))) for i, job in enumerate(jobs)
        ]
        self.drives = sorted(self.book.desired)

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for t in self.threads:
            t.join()
        assert not self.failures, "\n".join(self.failures)

    def work(self, job, number, rng):
        client = Client(self)
        try:
            while not self.over.is_set():
                job(client, rng, number)
        except requests.RequestException:
            if not self.doomed:
                self.failures.append(f"{job.__name__}: the connection broke while the daemon lived")
        except Exception as e:  # noqa: BLE001
            self.failures.append(f"{job.__name__}: {e!r}")

    def change(self, fact, to, call):
        """Asks; what is not answered, or by a failure, stays open. The answer."""
        fact.ask(to)
        r = call()
        if r.status_code < 300 and (not r.content or r.json().get("recorded", True)):
            fact.acknowledge()
        elif r.status_code < 500:
            fact.refuse()
        return r

    def change_power(self, client, rng, _):
        unreachable = self.unreachable
        drive = rng.choice(self.drives)
        path = f"/drives/{drive}/power/desired"
        fact = self.book.desired[drive]
        if fact.value is not None and rng.random() < 0.3:
            r = self.change(fact, None, lambda: client("DELETE", path))
        else:
            state = rng.randrange(3)
            r = self.change(fact, state, lambda: client("PUT", path, {"state": state}))
        # Under the lease of a run that has not ended yet a wish is only kept: no drive is asked.
        kept = r.ok and drive in self.drives[:2] and (not r.content or r.json()["held_by"].startswith("run:"))
        assert r.status_code in (404, 503) or kept or not unreachable, f"{path}: {r.status_code} {r.text} without a helper"

    def change_labels(self, client, rng, _):
        drive = rng.choice(self.drives)
        labels = {"rack": f"r{rng.randrange(1000)}"}
        self.change(self.book.labels[drive], labels, lambda: client("PATCH", f"/drives/{drive}", {"labels": labels}))

    def change_tokens(self, client, rng, _):
        usable = [i for i, f in self.book.tokens.items() if f.value and not f.asked]
        if len(usable) > rng.randrange(12):
            token = rng.choice(usable)
            self.change(self.book.tokens[token], False, lambda: client("DELETE", f"/tokens/{token}"))
        else:
            made = client("POST", "/tokens", {"name": "round"}).json()
            fact = Fact(True)
            fact.secret = made["token"]
            self.book.tokens[made["id"]] = fact

    def change_hosts(self, client, rng, _):
        known = [i for i, f in self.book.hosts.items() if f.value and not f.asked]
        name = f"host-{rng.randrange(10**6)}"
        if len(known) < rng.randrange(12):
            made = client("POST", "/hosts", {"name": name})
            if made.status_code == 201:
                self.book.hosts[made.json()["id"]] = Fact(name)
        elif rng.random() < 0.5:
            host = rng.choice(known) if known else None
            if host:
                self.change(self.book.hosts[host], name, lambda: client("PATCH", f"/hosts/{host}", {"name": name}))
        elif known:
            host = rng.choice(known)
            self.change(self.book.hosts[host], None, lambda: client("DELETE", f"/hosts/{host}"))

    def run(self, client, rng, number):
        """One run after another, on a drive that the other such thread does not use."""
        drive = self.drives[number % 2]
        idle = rng.random() < 0.2
        body = {"drives": [drive], "workload": "idle" if idle else LIGHT, "runtime_s": 1 if idle else 60}
        if rng.random() < 0.7:
            body["power_state"] = rng.randrange(3)
        r = client("POST", "/benchmarks", body)
        if self.degraded and r.status_code in (409, 503):
            self.over.wait(0.05)
            return
        assert r.status_code == 202, r.text
        run = r.json()["id"]
        self.book.runs[run] = Fact(True)
        self.follow(client, run, wanted=None if idle or rng.random() < 0.4 else rng.choice(("preparing", "running")))

    def follow(self, client, run, wanted):
        """Cancels the run when it is in the wanted state, else waits for its end."""
        while not self.over.is_set():
            now = client("GET", f"/benchmarks/{run}").json()
            if now["state"] == "running":
                self.running.set()
            if now["state"] in FINAL:
                self.book.ends[run] = now["state"]
                return
            if now["state"] == wanted:
                client("POST", f"/benchmarks/{run}/cancel")
                wanted = None
            self.over.wait(0.02)

    def read(self, client, rng, _):
        paths = ("/drives", "/hosts", "/benchmarks", "/tokens", "/system", "/audit", "/hosts/local/power", "/series")
        client("GET", rng.choice(paths))


# -- processes --------------------------------------------------------------------------------------


def stat_of(pid):
    """(state, parent, session) or None."""
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            state, parent, _, session = f.read().rsplit(")", 1)[1].split()[:4]
            return state, int(parent), int(session)
    return None


def session_of(leader):
    """Processes of the session that live, except for those that only wait to be reaped."""
    found = {}
    for path in glob.glob("/proc/[0-9]*"):
        pid = int(path[6:])
        stat = stat_of(pid)
        if stat and stat[2] == leader and stat[0] not in "ZX":
            found[pid] = stat[1]
    return found


def kill(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


# -- one data directory over its rounds ---------------------------------------------------------------


class House:
    """A daemon whose life has many ends. Its session is its own, by which leftovers are found."""

    VICTIMS = ("network",) * 5 + ("helper",) * 2 + ("both",) * 2 + ("start",)

    def __init__(self, name, drives, *flags, bed=None):
        self.name = name
        self.drives = drives
        self.bed = bed
        prefix = [*(bed.prefix if bed else []), "setsid"]
        self.service = Service(*QUICK, *flags, prefix=prefix, env=bed.environment if bed else None)
        self.service.allowed.append("privileged helper is gone")
        self.book = Book()
        self.token = None
        self.leaders = []

    def start(self):
        self.service.start()
        self.leaders.append(self.service.process.pid)
        if self.token:
            self.service.session.auth = None
            self.service.session.headers["Authorization"] = "Bearer " + self.token
        else:
            self.get_to_know()

    def get_to_know(self):
        r = self.service.post("/api/v1/tokens", {"name": "all-rounds"})
        assert r.status_code == 201, r.text
        self.token = r.json()["token"]
        self.book.desired = {d["id"]: Fact() for d in self.all_drives()}
        self.book.labels = {d["id"]: Fact({}) for d in self.all_drives()}

    def all_drives(self):
        return wait_until(lambda: (lambda d: d if len(d) == self.drives else None)(self.service.drives()), WAIT_S, "drives")

    def helper(self):
        """The process id of the helper of the daemon that lives now."""
        leader = self.service.process.pid
        return next(pid for pid, parent in session_of(leader).items() if parent == leader)

    def close(self):
        with contextlib.suppress(AssertionError):
            self.service.stop(check=False)
        self.service.close()

    # -- a round -----------------------------------------------------------------------------------

    def round(self, rng):
        victim = rng.choice(self.VICTIMS)
        delay_s = rng.uniform(0, 1) ** 2
        self.load_and_kill(victim, rng.random() < 0.6, delay_s, rng)
        if victim == "start":
            self.kill_at_start(rng.uniform(0, 0.4))
        self.start()
        self.verify()
        return victim

    def load_and_kill(self, victim, wait_for_run, delay_s, rng):
        helper = self.helper()
        with Load(self, rng) as load:
            if wait_for_run:
                wait_until(lambda: load.running.is_set() or load.failures, WAIT_S, "a run")
            load.over.wait(delay_s)
            if victim in ("helper", "both"):
                load.degraded = True
                kill(helper)
            if victim == "helper":
                self.check_degraded(load)
            load.doomed = True
            if victim == "helper" and rng.random() < 0.5:
                self.service.stop()  # in order, also without one
            else:
                self.service.kill()

    def kill_at_start(self, delay_s):
        env = {**os.environ, **self.service.env, "DRIVEWATT_ADMIN_PASSWORD": self.service.password}
        with open(self.service.log_path, "ab") as log:
            process = subprocess.Popen(
                self.service.command(), stdout=subprocess.DEVNULL, stderr=log, stdin=subprocess.DEVNULL, env=env
            )
        self.leaders.append(process.pid)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(delay_s)
        process.kill()
        process.wait()

    # -- without a helper ----------------------------------------------------------------------------

    def check_degraded(self, load):
        """The daemon goes on and says what it cannot do."""
        s = self.service
        wait_until(lambda: self.metric("drivewatt_helper_lost_total") == 1, WAIT_S, "the loss is counted")
        wait_until(lambda: HELPER_GONE in (s.json("/api/v1/system")["benchmarks_reason"] or ""), WAIT_S, "the reason")
        drive = sorted(self.book.desired)[-1]
        r = s.post("/api/v1/benchmarks", {"drives": [drive], "workload": LIGHT, "runtime_s": 1})
        assert r.status_code == 503 and HELPER_GONE in r.text, r.text
        assert s.get("/readyz").status_code == (503 if self.bed else 200)
        wait_until(lambda: not self.fio(), WAIT_S, "the end of every fio")
        if self.bed:
            wait_until(lambda: HELPER_GONE in (s.json("/api/v1/system")["drives_reason"] or ""), WAIT_S, "the reason")
            wait_until(lambda: all(d["state"] == "failed" for d in s.drives()), WAIT_S, "drives out of reach")
            load.unreachable = True
            assert s.get(f"/api/v1/drives/{drive}/power").status_code == 200
        else:
            assert s.json("/api/v1/system")["drives_reason"] is None

    def metric(self, name):
        text = self.service.get("/metrics").text
        return float(re.search(rf"^{name} (\S+)$", text, re.M).group(1))

    def fio(self):
        leader = self.service.process.pid
        helper_and_self = {p for p, parent in session_of(leader).items() if parent == leader} | {leader}
        return set(session_of(leader)) - helper_and_self

    # -- after the restart ---------------------------------------------------------------------------

    def verify(self):
        self.verify_desired()
        self.verify_labels()
        self.verify_tokens()
        self.verify_hosts()
        self.verify_runs()
        self.verify_processes()
        self.verify_drives()
        self.verify_databases()
        self.service.check_log()

    def verify_desired(self):
        for drive, fact in self.book.desired.items():
            r = self.service.get(f"/api/v1/drives/{drive}/power/desired")
            fact.meet(None if r.status_code == 404 else r.json()["state"], f"desired of {drive}")

    def verify_labels(self):
        for drive in self.all_drives():
            self.book.labels[drive["id"]].meet(drive["labels"], f"labels of {drive['id']}")

    def verify_tokens(self):
        for token, fact in list(self.book.tokens.items()):
            r = requests.get(
                self.service.url + "/api/v1/system", headers={"Authorization": "Bearer " + fact.secret}, timeout=WAIT_S
            )
            assert r.status_code in (200, 401), r.text
            fact.meet(r.status_code == 200, f"token {token}")
            if not fact.value:
                del self.book.tokens[token]

    def verify_hosts(self):
        names = {h["id"]: h["name"] for h in self.service.json("/api/v1/hosts?limit=1000")["items"]}
        for host, fact in list(self.book.hosts.items()):
            fact.meet(names.get(host), f"host {host}")
            if fact.value is None:
                del self.book.hosts[host]

    def verify_runs(self):
        """Each is there and over; an end that was shown before is still the same."""
        for run, fact in list(self.book.runs.items()):
            r = self.service.get(f"/api/v1/benchmarks/{run}")
            fact.meet(r.status_code == 200, f"run {run}")
            state = r.json()["state"]
            assert state in FINAL, f"run {run} is {state} after a restart"
            assert self.book.ends.get(run, state) == state, f"run {run} was {self.book.ends[run]}, is {state}"
            self.book.ends[run] = state
        while len(self.book.runs) > 12:
            run = next(iter(self.book.runs))
            assert self.service.delete(f"/api/v1/benchmarks/{run}").status_code == 204
            del self.book.runs[run], self.book.ends[run]

    def verify_processes(self):
        """Nothing of earlier lives is left, and nothing runs in this one."""
        *before, _ = self.leaders
        for leader in before:
            wait_until(lambda pid=leader: not session_of(pid), WAIT_S, f"the end of session {leader}")
        del self.leaders[:-1]
        assert not self.fio(), "a fio runs after the restart"

    def verify_drives(self):
        def settled(drive, state):
            p = self.service.json(f"/api/v1/drives/{drive}/power")
            return p["in_sync"] and p["state"] == state and not [c for c in p["claims"] if c["kind"] == "lease"]

        for drive, fact in self.book.desired.items():
            state = 0 if fact.value is None else fact.value
            wait_until(lambda d=drive, s=state: settled(d, s), WAIT_S, f"{drive} in state {state}")
        if self.bed:
            serials = {d["id"]: int(d["serial"][3:]) for d in self.all_drives()}
            for drive, fact in self.book.desired.items():
                assert self.bed.get(serials[drive], "power") & 0x1F == (fact.value or 0)

    def verify_databases(self):
        for name in ("control.db", "samples.db"):
            db = sqlite3.connect(f"file:{self.service.data_dir}/{name}?mode=ro", uri=True, timeout=WAIT_S)
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)], name
            assert db.execute("PRAGMA foreign_key_check").fetchall() == [], name
            if name == "control.db":
                wait_until(lambda: not db.execute("SELECT 1 FROM claim WHERE kind = 'lease'").fetchall(), WAIT_S, "no lease")
            db.close()


@contextlib.contextmanager
def houses():
    """One with simulated drives, one with the bed's."""
    with contextlib.ExitStack() as stack:
        simulated = House("simulated", 4, "--simulate", "4")
        stack.callback(simulated.close)
        bed = Bed(3)
        stack.callback(bed.close)
        nvme = House("bed", 3, bed=bed)
        stack.callback(nvme.close)
        yield simulated, nvme


def kill_rounds(count, seed, say=print):
    """Rounds by turns on both; a failing one can be repeated by its seed."""
    with houses() as both:
        for house in both:
            house.start()
        for i in range(count):
            house = both[i % len(both)]
            begun = time.monotonic()
            say(f"round {i} of seed {seed} on {house.name}: ", end="", flush=True)
            victim = house.round(random.Random(f"{seed}/{i}"))
            say(f"{victim}, {time.monotonic() - begun:.1f} s", flush=True)
