"""Starts the real daemon for a test and holds it to account when the test is over."""

import functools
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import contract
import requests

BINARY = os.environ.get("DRIVEWATTD", "build/drivewattd")
PASSWORD = "a-good-password"
START_S = 60
STOP_S = 40

# As root the daemon becomes an account of its own. Where it is missing, nobody does for a test.
ACCOUNT = "drivewatt"
try:
    pwd.getpwnam(ACCOUNT)
except KeyError:
    ACCOUNT = os.environ["DRIVEWATT_USER"] = "nobody"

# Lines that no run may leave behind, unless the test provokes them.
BAD_LINE = re.compile(
    r"^(error |<error>)|ERROR: AddressSanitizer|WARNING: ThreadSanitizer|"
    r"runtime error:|ERROR: LeakSanitizer|SUMMARY: \w+Sanitizer"
)


def wait_until(condition, timeout_s=30.0, what="condition", pause_s=0.02):
    """Polls for a condition with a deadline; returns its value."""
    deadline = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come true within {timeout_s} s")
        threading.Event().wait(pause_s)


def anonymous(request):
    """As auth: no credentials."""
    return request


def bearer(token):
    """As auth: a token."""

    def sign(request):
        request.headers["Authorization"] = "Bearer " + token
        return request

    return sign


@functools.lru_cache
def routes():
    """(method, path, operationId, role) of every route of the program, role "public" for none."""
    text = subprocess.run([BINARY, "--dump-routes"], check=True, capture_output=True, text=True).stdout
    return [tuple(line.split()[:4]) for line in text.splitlines() if line]


@functools.lru_cache
def tried():
    """operationIds of the routes that take ?dry_run."""
    text = subprocess.run([BINARY, "--dump-routes"], check=True, capture_output=True, text=True).stdout
    return {line.split()[2] for line in text.splitlines() if line.endswith(" dry-run")}


def problem(response, status, pointer=None, parameter=None):
    """Fails unless the response is this problem; returns it."""
    assert response.status_code == status, f"{response.status_code} {response.text}"
    assert response.headers["Content-Type"] == "application/problem+json"
    body = response.json()
    assert body["status"] == status
    if pointer is not None:
        assert body["errors"][0]["pointer"] == pointer, body
    if parameter is not None:
        assert body["errors"][0]["parameter"] == parameter, body
    return body


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(word) for word in f.read().split()]


def fio_of(service):
    """The process of fio below the helper, or None."""
    for helper in children(service.process.pid):
        for pid in children(helper):
            return pid
    return None


class Service:
    """One drivewattd with its own data directory and port."""

    def __init__(self, *flags, data_dir=None, password=PASSWORD, env=None, prefix=(), listen="127.0.0.1:0"):
        self.base_dir = data_dir or tempfile.mkdtemp(prefix="dw-", dir="/tmp")
        os.chmod(self.base_dir, 0o755)
        self.data_dir = os.path.join(self.base_dir, "data")
        self.log_path = os.path.join(self.base_dir, "log")
        self.flags = list(flags)
        self.prefix = list(prefix)
        self.listen = listen
        self.password = password
        self.env = dict(env or {})
        self.allowed = []
        self.process = None
        self.url = None
        self.lines = []

    # -- life ------------------------------------------------------------------------------------

    def command(self):
        return [*self.prefix, BINARY, "--listen", self.listen, "--data-dir", self.data_dir, *self.flags]

    def start(self):
        env = {**os.environ, **self.env}
        if self.password:
            env["DRIVEWATT_ADMIN_PASSWORD"] = self.password
        log = open(self.log_path, "ab")
        self.process = subprocess.Popen(
            self.command(), stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL, env=env, text=True
        )
        log.close()
        ready = threading.Event()
        self.lines = []
        self.terminated = False

        def read():
            for line in self.process.stdout:
                self.lines.append(line.rstrip("\n"))
                if line.startswith("drivewattd ready on "):
                    self.url = line.split()[-1]
                    ready.set()
            ready.set()

        threading.Thread(target=read, daemon=True).start()
        if not ready.wait(START_S) or not self.url or self.process.poll() is not None:
            self.kill()
            raise AssertionError(f"drivewattd did not become ready: {self.log()[-4000:]}")
        self.session = requests.Session()
        self.session.auth = ("admin", self.password)
        return self

    def stop(self, check=True):
        """SIGTERM, unless it was sent; fails on a slow stop, a bad status or a bad line in the log."""
        if self.process is None:
            return
        self.session.close()
        self.terminate()
        try:
            status = self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"drivewattd did not stop: {self.log()[-4000:]}") from None
        self.process = None
        if check:
            assert status == 0, f"exit status {status}: {self.log()[-4000:]}"
            self.check_log()

    def terminate(self):
        """SIGTERM, once: a second one ends the process at once."""
        if not self.terminated and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.terminated = True

    def kill(self):
        """kill -9 of the network process."""
        self.process.kill()
        self.process.wait()
        self.process = None

    def close(self):
        try:
            self.stop()
        finally:
            shutil.rmtree(self.base_dir, ignore_errors=True)

    def log(self):
        with open(self.log_path, errors="replace") as f:
            return f.read()

    def check_log(self):
        for line in self.log().splitlines():
            if BAD_LINE.search(line) and not any(re.search(a, line) for a in self.allowed):
                raise AssertionError(f"bad line in the log: {line}\n{self.log()[-6000:]}")

    # -- requests --------------------------------------------------------------------------------

    def request(self, method, path, **kwargs):
        kwargs.setdefault("timeout", 60)
        response = self.session.request(method, self.url + path, **kwargs)
        if not kwargs.get("stream"):
            contract.check(response)
        return response

    def get(self, path, **kwargs):
        return self.request("GET", path, **kwargs)

    def post(self, path, json=None, **kwargs):
        return self.request("POST", path, json=json, **kwargs)

    def put(self, path, json=None, **kwargs):
        return self.request("PUT", path, json=json, **kwargs)

    def patch(self, path, json=None, **kwargs):
        return self.request("PATCH", path, json=json, **kwargs)

    def delete(self, path, **kwargs):
        return self.request("DELETE", path, **kwargs)

    def json(self, path, status=200):
        r = self.get(path)
        assert r.status_code == status, f"{path}: {r.status_code} {r.text}"
        return r.json()

    def drives(self):
        return self.json("/api/v1/drives")["items"]

    def run(self, timeout_s=120, **body):
        """Starts a benchmark and waits for its end."""
        r = self.post("/api/v1/benchmarks", json=body)
        assert r.status_code == 202, r.text
        path = r.headers["Location"]

        def over():
            run = self.json(path)
            return run if run["state"] not in ("queued", "preparing", "running") else None

        return wait_until(over, timeout_s, f"benchmark {path}")
