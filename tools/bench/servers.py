"""The servers that are measured, each in a process of its own, and what their processes cost."""

import base64
import http.client
import json
import os
import signal
import subprocess
import time

PASSWORD = "bench-password"
BASIC = "Basic " + base64.b64encode(f"admin:{PASSWORD}".encode()).decode()


def tree(pid):
    """A process and its children."""
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [pid, *(p for child in f.read().split() for p in tree(int(child)))]


def cpu_s(pid):
    """Processor time of a process's threads so far."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat") as f:
            total += int(f.read().split()[0])
    return total / 1e9


def memory_mb(pid):
    """(RSS, PSS) of a process and its children."""
    sums = {"Rss:": 0, "Pss:": 0}
    for p in tree(pid):
        with open(f"/proc/{p}/smaps_rollup") as f:
            for line in f:
                words = line.split()
                if words[0] in sums:
                    sums[words[0]] += int(words[1]) / 1000
    return sums["Rss:"], sums["Pss:"]


class Server:
    """Ends with the block that it is used in."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Bare(Server):
    """libmicrohttpd alone, answering everything with one answer that drivewattd gave."""

    def __init__(self, program, answer_file, mode="poll", threads=2):
        self.process = subprocess.Popen(
            [program, answer_file, str(threads), mode],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        self.pid = self.process.pid

    def stop(self):
        self.process.stdin.close()
        self.process.wait(30)


class Daemon(Server):
    """drivewattd with simulated drives, or those of a bed, on a free port of loopback."""

    def __init__(self, data_dir, drives, *flags, bed=None):
        command = [
            os.environ["DRIVEWATTD"], "--listen", "127.0.0.1:0", "--data-dir", data_dir,
            "--log-level", "error", "--max-per-address", "0", *flags,
        ]
        env = {**os.environ, "DRIVEWATT_ADMIN_PASSWORD": PASSWORD}
        if bed:
            command = [*bed.prefix, *command]
            env.update(bed.environment)
        else:
            command += ["--simulate", str(drives)]
        began = time.perf_counter()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, env=env, text=True)
        self.pid = self.process.pid
        for line in self.process.stdout:
            if line.startswith("drivewattd ready on "):
                self.start_s = time.perf_counter() - began
                self.url = line.split()[-1]
                return
        raise SystemExit("drivewattd did not start")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        self.process.stdout.close()

    def connect(self):
        return http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=60)

    def call(self, method, path, body=None, headers=None):
        """Status, header lines and body of one request."""
        connection = self.connect()
        sent = {"Authorization": BASIC, **(headers or {})}
        if body is not None:
            sent["Content-Type"] = "application/json"
            body = json.dumps(body)
        connection.request(method, path, body, sent)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        if answer.status >= 300:
            raise SystemExit(f"{method} {path}: {answer.status} {data[:300]}")
        return answer, data

    def get(self, path):
        return json.loads(self.call("GET", path)[1])

    def save_answer(self, path, file, headers):
        """Writes a cached answer as bare_mhd reads it."""
        for _ in range(2):
            answer, data = self.call("GET", path, headers=headers)
        with open(file, "wb") as f:
            f.write(b"HTTP/1.1 200 OK\r\n")
            for name, value in answer.getheaders():
                f.write(f"{name}: {value}\r\n".encode())
            f.write(b"\r\n" + data)
        return len(data)

    def settle(self, drives):
        """Waits until every drive has been read: then lists stand still."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            items = self.get(f"/api/v1/drives?limit={drives}")["items"]
            if len(items) == drives and all(i["temperature_c"] is not None for i in items):
                return [i["id"] for i in items]
            time.sleep(0.1)
        raise SystemExit("the simulated drives did not come to life")
