"""Remote write: what a receiver gets is what the daemon has, whatever happens on the way."""

import os
import re
import socket
import subprocess

import pytest
import requests
from remote_write import Receiver
from service import BINARY, Service, wait_until

PROMETHEUS = os.path.join(os.environ.get("PROMETHEUS", "build/prometheus"), "usr/bin/prometheus")
VICTORIA_METRICS = os.path.join(
    os.environ.get("VICTORIA_METRICS", "build/victoria-metrics"), "usr/bin/victoria-metrics"
)
QUANTITIES = {"power": ("power_watts", 1), "energy_counter": ("energy_joules_total", 3.6e6),
              "temperature": ("temperature_celsius", 1)}
FLAGS = ("--simulate", "2", "--meter", "100ms", "--health", "200ms", "--remote-write-interval", "200ms",
         "--remote-write-plaintext")


def metric(service, name):
    text = service.get("/metrics").text
    return float(re.search(rf"^drivewatt_remote_write_{name} (\S+)", text, re.M).group(1))


def spool(service):
    return sorted(n for n in os.listdir(service.data_dir + "/remote-write") if n != "new")


def samples_in(names):
    return sum(int(re.fullmatch(r"\d{20}-\d+-(\d+)\.snappy", n).group(1)) for n in names)


def kept(service):
    """{(metric, object, quality): {ms: value}} of all series."""
    found = {}
    for s in service.json("/api/v1/series")["items"]:
        name, unit = QUANTITIES[s["quantity"]]
        kind = "host" if s["object"] == "host" else "drive"
        inlet = "inlet_" if kind == "host" and s["quantity"] == "temperature" else ""
        rows = service.json(s["href"] + "/samples?limit=40000")["items"]
        key = (f"drivewatt_{kind}_{inlet}{name}", s["object"], s["quality"])
        found[key] = {ms(row["at"]): row["value"] * unit for row in rows}
    return found


def ms(text):
    from datetime import datetime

    return round(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)


def sent(receiver):
    with receiver.lock:
        found = {}
        for labels, samples in receiver.samples.items():
            labels = dict(labels)
            key = (labels["__name__"], labels.get("drive", "host"), labels["quality"])
            found.setdefault(key, {}).update(samples)
        return found


def compare(service, receiver):
    """All that was kept until now arrives, with its values, and nothing else."""
    have = kept(service)
    assert have

    def arrived():
        got = sent(receiver)
        return all(set(rows) <= set(got.get(key, ())) for key, rows in have.items())

    wait_until(arrived, 60, "what was kept to arrive")
    got, have = sent(receiver), kept(service)
    for key, rows in got.items():
        for at, value in rows.items():
            assert have[key][at] == pytest.approx(value, abs=1e-9), f"{key} at {at}"


@pytest.fixture(scope="module")
def receiver():
    with Receiver() as r:
        yield r


@pytest.fixture(scope="module")
def service(receiver, tmp_path_factory):
    password = tmp_path_factory.mktemp("remote") / "password"
    password.write_text("a secret\n")
    for path in (password.parent, password.parent.parent, password.parent.parent.parent, password):
        path.chmod(0o755)
    service = Service(*FLAGS, "--remote-write-url", receiver.url, "--remote-write-username", "dw",
                      "--remote-write-password-file", str(password), "--remote-write-label", "rack=r1",
                      "--remote-write-label", "instance=storage-1").start()
    yield service
    service.close()


def test_what_is_sent_is_what_is_kept(service, receiver):
    wait_until(lambda: len(sent(receiver)) >= 3, 60, "power and both temperatures")
    compare(service, receiver)
    assert receiver.faults == []
    assert metric(service, "samples_sent_total") > 0
    assert metric(service, "samples_dropped_total") == metric(service, "samples_refused_total") == 0


def test_labels_say_where_it_comes_from(service, receiver):
    host = service.json("/api/v1/hosts/local")["id"]
    drives = {d["id"] for d in service.drives()}
    for labels in list(receiver.samples):
        labels = dict(labels)
        assert labels["quality"] == "simulated"
        assert labels["host"] == host
        assert (labels["rack"], labels["instance"], labels["job"]) == ("r1", "storage-1", "drivewatt")
        assert labels["__name__"].startswith("drivewatt_drive_") == ("drive" in labels)
        assert labels.get("drive") in drives | {None}


def test_credentials_go_along(receiver, service):
    wait_until(lambda: receiver.requests)
    _, headers, _ = receiver.requests[-1]
    assert headers["Authorization"] == "Basic ZHc6YSBzZWNyZXQ="
    assert "OData-Version" not in headers


def test_a_failure_is_tried_again_when_the_receiver_says(service, receiver):
    failed = metric(service, "failures_total")
    with receiver.lock:
        receiver.answers += [(503, {"Retry-After": "2"}), (429, {})]
        first = len(receiver.requests)
    wait_until(lambda: len(receiver.requests) > first + 2, 60, "three requests")
    wait_until(lambda: not receiver.answers)
    requests_ = receiver.requests[first : first + 3]
    assert requests_[1][0] - requests_[0][0] >= 1.9, "Retry-After"
    assert len({body for _, _, body in requests_}) == 1, "the same message until it is taken"
    compare(service, receiver)
    assert metric(service, "failures_total") - failed == 2
    assert metric(service, "samples_dropped_total") == metric(service, "samples_refused_total") == 0


def test_what_is_refused_for_good_is_dropped_and_counted(service, receiver):
    with receiver.lock:
        receiver.answers += [(400, {}), (413, {})]
        first = len(receiver.requests)
    refused = wait_until(lambda: len(receiver.requests) > first + 2 and metric(service, "samples_refused_total"))
    assert refused > 0
    bodies = [body for _, _, body in receiver.requests[first : first + 3]]
    assert len(set(bodies)) == 3, "neither was sent again"


def test_over_tls_with_a_token(start, tmp_path):
    with Receiver(tls=True) as receiver:
        service = Service(*FLAGS)
        token, ca = os.path.join(service.base_dir, "token"), os.path.join(service.base_dir, "ca.pem")
        with open(token, "w", encoding="utf-8") as f:
            f.write("one-token")
        receiver.ca.cert_pem.write_to_path(ca)
        service.flags += ["--remote-write-url", receiver.url, "--remote-write-token-file", token,
                          "--remote-write-ca-file", ca]
        try:
            service.start()
            wait_until(receiver.count, 60)
            assert receiver.requests[-1][1]["Authorization"] == "Bearer one-token"
            with open(token, "w", encoding="utf-8") as f:
                f.write("another-token\n")
            wait_until(lambda: receiver.requests[-1][1]["Authorization"] == "Bearer another-token", 60)
        finally:
            service.close()


def test_an_unknown_authority_gets_nothing(start):
    with Receiver(tls=True) as receiver:
        service = start(*FLAGS, "--remote-write-url", receiver.url)
        wait_until(lambda: metric(service, "failures_total"))
        assert metric(service, "spool_samples") > 0
        assert receiver.requests == []


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def test_what_waits_survives_a_kill(start):
    port = free_port()
    service = start(*FLAGS, "--remote-write-url", f"http://127.0.0.1:{port}/write")
    wait_until(lambda: metric(service, "spool_samples") >= 20, 60)
    wait_until(lambda: metric(service, "failures_total"))
    service.kill()
    left = spool(service)
    assert samples_in(left) >= 20
    with open(service.data_dir + "/remote-write/new", "w", encoding="utf-8") as f:
        f.write("half a mess")
    with Receiver(port=port) as receiver:
        service.start()
        wait_until(lambda: not set(left) & set(spool(service)), 60, "the old messages to be sent")
        assert receiver.count() >= samples_in(left)
        compare_known(service, receiver)
        service.stop()
        # What had not been sent at the end lies there for the next start.
        service.start()
        compare_known(service, receiver)


def compare_known(service, receiver):
    """As compare(), of the samples that have arrived: the last before a kill may be kept alone."""
    have = kept(service)
    for key, rows in sent(receiver).items():
        common = set(rows) & set(have[key])
        assert common
        assert all(have[key][at] == pytest.approx(rows[at], abs=1e-9) for at in common)


def test_a_full_spool_drops_the_oldest(start):
    service = start(*FLAGS, "--remote-write-spool-bytes", "32768",
                    "--remote-write-url", f"http://127.0.0.1:{free_port()}/write")
    wait_until(lambda: metric(service, "samples_dropped_total") >= 3, 60)
    names = spool(service)
    assert 5 <= len(names) <= 9
    numbers = [int(n.split("-")[0]) for n in names]
    assert numbers[0] >= 1 and numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert metric(service, "spool_bytes") <= 32768


def test_what_is_too_old_is_dropped(start):
    service = start(*FLAGS, "--remote-write-keep", "1s", "--remote-write-url", f"http://127.0.0.1:{free_port()}/write")
    wait_until(lambda: metric(service, "samples_dropped_total") >= 3, 60)


@pytest.mark.parametrize("flags, key", [
    (["--remote-write-url", "ftp://x"], "remote-write-url"),
    (["--remote-write-url", "http://127.0.0.1/w"], "remote-write-url"),
    (["--remote-write-url", "https://x/w", "--remote-write-username", "a"], "remote-write-password-file"),
    (["--remote-write-url", "https://x/w", "--remote-write-label", "quality=measured"], "remote-write-label"),
    (["--remote-write-url", "https://x/w", "--remote-write-label", "a-b=c"], "remote-write-label"),
    (["--remote-write-url", "https://x/w", "--remote-write-label", "a="], "remote-write-label"),
])
def test_bad_settings_are_named(flags, key):
    r = subprocess.run([BINARY, "--check-config", *flags], capture_output=True, text=True, timeout=60)
    assert r.returncode == 2 and key in r.stderr


def prometheus(directory, port):
    (directory / "prometheus.yml").write_text("{}")
    return [PROMETHEUS, f"--config.file={directory}/prometheus.yml", f"--storage.tsdb.path={directory}/data",
            f"--web.listen-address=127.0.0.1:{port}", "--web.enable-remote-write-receiver", "--log.level=error"]


def victoria_metrics(directory, port):
    return [VICTORIA_METRICS, f"-storageDataPath={directory}/data", f"-httpListenAddr=127.0.0.1:{port}",
            "-retentionPeriod=100y", "-loggerLevel=ERROR"]


@pytest.mark.parametrize("command", [prometheus, victoria_metrics])
def test_a_real_store_takes_it(start, tmp_path, command):
    """The real thing: values asked back from the store are those of the daemon."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with subprocess.Popen(command(tmp_path, port), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as store:
        try:
            wait_until(lambda: is_ready(url), 120, "the store", 0.1)
            service = start(*FLAGS, "--remote-write-url", url + "/api/v1/write")
            wait_until(lambda: len(asked(url)) >= 3 and metric(service, "samples_sent_total") > 30, 60)
            service.stop()
            service.start()
            have = kept(service)

            def there():
                got = asked(url)
                return all(set(rows) <= set(got.get(key, ())) for key, rows in have.items())

            wait_until(there, 60, "the store to have all samples")
            got = asked(url)
            for key, rows in have.items():
                for at, value in rows.items():
                    assert got[key][at] == pytest.approx(value, abs=1e-9), f"{key} at {at}"
            assert metric(service, "samples_refused_total") == 0
        finally:
            store.terminate()


def is_ready(url):
    try:
        return requests.get(url + "/-/ready", timeout=10).status_code == 200
    except requests.ConnectionError:
        return False


def asked(url):
    """As kept(), from the store."""
    query = '{__name__=~"drivewatt_.*",job="drivewatt"}[1h]'
    r = requests.get(url + "/api/v1/query", params={"query": query}, timeout=30).json()
    found = {}
    for series in r["data"]["result"]:
        labels = series["metric"]
        key = (labels["__name__"], labels.get("drive", "host"), labels["quality"])
        found[key] = {round(at * 1000): float(value) for at, value in series["values"]}
    return found
