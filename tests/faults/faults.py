"""Rounds in which the n-th call for memory, or of the store, fails: the daemon lives and keeps its word.

What fails is told by a file that is shared with tests/support/faults/fault_shim.c, preloaded into
the daemon. A request may then be answered by anything, or not at all; what was acknowledged holds,
and as soon as nothing fails any more everything works again.
"""

import contextlib
import itertools
import mmap
import os
import random
import struct
import subprocess
import time

import requests
from killing import FINAL, LIGHT, WAIT_S, Fact, House
from service import wait_until

MEMORY, STORE = 1, 2
SHIM = os.path.join(os.environ.get("BED", "build/bed"), "fault_shim.so")


class Plan:
    """struct fault_plan, as the shim sees it."""

    FIELDS = ("kind", "pid", "first", "count", "seen", "failed")

    def __init__(self, path):
        self.path = path
        with open(path, "w+b") as f:
            f.truncate(8 * len(self.FIELDS))
            self.map = mmap.mmap(f.fileno(), 0)
        os.chmod(path, 0o666)

    def __getitem__(self, field):
        return struct.unpack_from("q", self.map, 8 * self.FIELDS.index(field))[0]

    def __setitem__(self, field, value):
        struct.pack_into("q", self.map, 8 * self.FIELDS.index(field), value)

    @contextlib.contextmanager
    def armed(self, kind, pid, first, count):
        for field, value in (("pid", pid), ("first", first), ("count", count), ("seen", 0), ("failed", 0)):
            self[field] = value
        self["kind"] = kind
        try:
            yield
        finally:
            self["kind"] = 0


class Work:
    """One request after another; each changes its object, or reads."""

    READS = (
        "/drives",
        "/drives/{drive}",
        "/drives/{drive}/power",
        "/drives/{drive}/power/desired",
        "/events",
        "/audit",
        "/series",
        "/hosts",
        "/hosts/local/power",
        "/hosts/local/energy?from=-1h",
        "/benchmarks",
        "/policies",
        "/tasks",
        "/system",
        "/workloads",
    )

    def __init__(self, house, rng, must_succeed):
        self.house, self.book, self.rng = house, house.book, rng
        self.must_succeed = must_succeed
        self.session = requests.Session()
        self.session.headers["Authorization"] = "Bearer " + house.token

    def ask(self, method, path, json=None, refusals=(), **kwargs):
        """The answer, None when there was none: the HTTP library without memory for its own loop
        forgets whom it has to answer until the connection's time is over."""
        timeout_s = WAIT_S if self.must_succeed else 3
        try:
            r = self.session.request(method, self.house.service.url + path, json=json, timeout=timeout_s, **kwargs)
        except (requests.ConnectionError, requests.Timeout):
            assert not self.must_succeed, f"{method} {path}: no answer"
            return None
        assert r.ok or r.status_code in refusals or not self.must_succeed, f"{method} {path}: {r.status_code} {r.text}"
        return r

    def change(self, fact, to, method, path, json=None):
        fact.ask(to)
        r = self.ask(method, "/api/v1" + path, json)
        if r is None or r.status_code >= 500:
            return None
        if not r.ok:
            fact.refuse()
        elif not r.content or r.json().get("recorded", True):
            fact.acknowledge()
        return r

    def all(self):
        drive = self.rng.choice(sorted(self.book.desired))
        self.change_power(drive)
        self.change_labels(drive)
        self.change_host()
        self.change_token()
        self.run(drive)
        for path in self.READS:
            self.ask("GET", "/api/v1" + path.format(drive=drive))
        for path in ("/metrics", "/readyz", "/openapi.json"):
            self.ask("GET", path)
        self.ask("GET", "/api/v1/system", auth=("admin", self.house.service.password))

    def change_power(self, drive):
        fact, path = self.book.desired[drive], f"/drives/{drive}/power/desired"
        state = self.rng.randrange(3)
        self.change(fact, state, "PUT", path, {"state": state})

    def change_labels(self, drive):
        labels = {"rack": f"r{self.rng.randrange(1000)}"}
        self.change(self.book.labels[drive], labels, "PATCH", f"/drives/{drive}", {"labels": labels})

    def change_host(self):
        known = [i for i, f in self.book.hosts.items() if f.value and not f.asked]
        if len(known) < 3:
            name = f"host-{next(self.house.numbers)}"
            r = self.ask("POST", "/api/v1/hosts", {"name": name})
            if r is not None and r.status_code == 201:
                self.book.hosts[r.json()["id"]] = Fact(name)
        else:
            self.change(self.book.hosts[known[0]], None, "DELETE", f"/hosts/{known[0]}")

    def change_token(self):
        known = [i for i, f in self.book.tokens.items() if f.value and not f.asked]
        if len(known) < 3:
            r = self.ask("POST", "/api/v1/tokens", {"name": "round"})
            if r is not None and r.status_code == 201:
                fact = self.book.tokens[r.json()["id"]] = Fact(True)
                fact.secret = r.json()["token"]
        else:
            self.change(self.book.tokens[known[0]], False, "DELETE", f"/tokens/{known[0]}")


    def run(self, drive):
        """Begun and cancelled, on the helper's side as well; an earlier one may still be ending."""
        body = {"drives": [drive], "workload": LIGHT, "runtime_s": 60, "power_state": self.rng.randrange(3)}
        r = self.ask("POST", "/api/v1/benchmarks", body, refusals=(409,))
        if r is not None and r.status_code == 202:
            self.book.runs[r.json()["id"]] = Fact(True)
            self.ask("POST", f"/api/v1/benchmarks/{r.json()['id']}/cancel")


class FaultHouse(House):
    """A daemon with the shim."""

    def __init__(self):
        super().__init__("faults", 4, "--simulate", "4", "--meter", "100ms")
        self.numbers = itertools.count()
        self.plan = Plan(os.path.join(self.service.base_dir, "plan"))
        self.service.env = {"LD_PRELOAD": os.path.abspath(SHIM), "FAULT_PLAN": self.plan.path}
        self.service.allowed += ["memory", "I/O error", "disk", "store", "out of"]

    def get_to_know(self):
        super().get_to_know()
        energy = "/api/v1/hosts/local/energy?from=-1h"
        wait_until(lambda: self.service.get(energy).ok, WAIT_S, "a reading")

    def calls(self, kind):
        """That one piece of work makes."""
        with self.plan.armed(kind, self.service.process.pid, 1, 0):
            Work(self, random.Random(0), True).all()
        return self.plan["seen"]

    def fault(self, kind, first, count, rng):
        with self.plan.armed(kind, self.service.process.pid, first, count):
            Work(self, rng, False).all()
        assert self.service.process.poll() is None, f"the daemon ended: {self.service.log()[-4000:]}"
        self.recover()
        wait_until(self.runs_are_over, WAIT_S, "the end of every run")
        return self.plan["failed"]

    def runs_are_over(self):
        """A cancellation that was not acknowledged may not have come to pass."""
        active = [r for r in self.service.json("/api/v1/benchmarks?limit=1000")["items"] if r["state"] not in FINAL]
        for r in active:
            self.service.post(f"/api/v1/benchmarks/{r['id']}/cancel")
        return not active

    def recover(self):
        """Nothing fails any more: everything is as it was, after a moment at most."""

        reason = None
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            try:
                Work(self, random.Random(1), True).all()
                return
            except AssertionError as e:
                reason = e
        raise AssertionError(f"not as before: {reason}") from reason

    def start_with(self, kind, first, count):
        """Ends by itself with a word on what was missing, or serves."""
        with self.plan.armed(kind, 0, first, count), open(self.service.log_path, "ab") as log:
            at = log.tell()
            env = {**os.environ, **self.service.env, "DRIVEWATT_ADMIN_PASSWORD": self.service.password}
            command = self.service.command()[len(self.service.prefix):]
            p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env=env, start_new_session=True)
            self.leaders.append(p.pid)
            line = p.stdout.readline()
            if line:
                p.terminate()
            status = p.wait(WAIT_S)
            p.stdout.close()
        said = self.service.log()[at:]
        assert status == 0 if line else status > 0 and said, f"start {first}: {status} {line} {said}"
        return bool(line)


def fault_rounds(count, seed, say=print):
    """Rounds of either kind; a failing one can be repeated by its seed."""
    house = FaultHouse()
    with contextlib.closing(house):
        house.start()
        calls = {kind: house.calls(kind) for kind in (MEMORY, STORE)}
        say(f"seed {seed}: {calls[MEMORY]} calls for memory, {calls[STORE]} of the store")
        for i in range(count):
            rng = random.Random(f"{seed}/{i}")
            kind = rng.choice((MEMORY, MEMORY, MEMORY, STORE))
            first, length = rng.randint(1, calls[kind]), rng.choice((1, 1, 1, 3, 100))
            say(f"round {i}: {'memory' if kind == MEMORY else 'store'} {first}+{length}: ", end="", flush=True)
            begun = time.monotonic()
            failed = house.fault(kind, first, length, rng)
            say(f"{failed} failed, {time.monotonic() - begun:.1f} s", flush=True)
        house.service.kill()
        house.start()
        house.verify()


def start_rounds(count, seed, say=print):
    """Starts in which a call fails; afterwards one in which none does."""
    house = FaultHouse()
    with contextlib.closing(house):
        house.start()
        house.service.stop()
        for i in range(count):
            rng = random.Random(f"{seed}/start/{i}")
            kind = rng.choice((MEMORY, STORE))
            # glibc's look-up of accounts, the first that allocates, does not survive it.
            first = 12 + int(10 ** rng.uniform(0, 3.6)) if kind == MEMORY else rng.randrange(60)
            served = house.start_with(kind, first, rng.choice((1, 10)))
            say(f"start {i}: {'memory' if kind == MEMORY else 'store'} {first}: {'served' if served else 'ended'}")
        house.start()
        house.verify()
