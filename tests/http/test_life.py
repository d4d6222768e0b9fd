"""The process: configuration, start, rights, TLS, restart, stop."""

import os
import pwd
import re
import signal
import socket
import sqlite3
import ssl
import subprocess
import threading
import time

import pytest
import requests
import trustme
from bed import Bed
from raw import Connection
from service import ACCOUNT, BINARY, PASSWORD, Service, children, fio_of, problem, wait_until

STOP_WITHIN_S = 25


def once(*flags, env=None, timeout=30):
    """A start that ends by itself: (status, output, log)."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("DRIVEWATT_")}
    environment["DRIVEWATT_USER"] = ACCOUNT
    done = subprocess.run(
        [BINARY, *flags], env={**environment, **(env or {})}, capture_output=True, text=True, timeout=timeout
    )
    return done.returncode, done.stdout, done.stderr


def refused(*flags, env=None, status=1):
    """A start that must fail with one line; returns the line."""
    code, out, err = once("--listen", "127.0.0.1:0", "--simulate", "1", *flags, env=env)
    assert code == status, f"{code}: {err}"
    errors = [line for line in err.splitlines() if "error " in line]
    assert len(errors) == 1, err
    assert "ready" not in out
    return errors[0]


def dumped(*flags, env=None):
    """What --dump-config says, as a dict."""
    code, out, err = once(*flags, "--dump-config", env=env)
    assert code == 0, err
    lines = [line for line in out.splitlines() if line and not line.startswith("#")]
    return dict(line.split(" =", 1) for line in lines)


# -- configuration ----------------------------------------------------------------------------------


def test_help_names_every_key():
    code, out, _ = once("--help")
    assert code == 0
    keys = set(dumped()) | {"config"}
    assert keys <= set(re.findall(r"--([a-z-]+)", out))
    assert {"help", "version", "check-config", "dump-config"} <= set(re.findall(r"--([a-z-]+)", out))


def test_version():
    code, out, _ = once("--version")
    assert code == 0 and re.fullmatch(r"drivewattd \S+\n", out)


def test_later_sources_win(tmp_path):
    file = tmp_path / "c.conf"
    file.write_text("# a comment\nworkers = 3\n  meter=2s\nqueue = 33\nlisten = 127.0.0.1:1\nlisten = 127.0.0.1:2\n")
    flags = ("--config", str(file))
    assert dumped(*flags)["workers"] == " 3"
    env = {"DRIVEWATT_WORKERS": "4", "DRIVEWATT_QUEUE": "44", "DRIVEWATT_LISTEN": "127.0.0.1:3,127.0.0.1:4"}
    assert dumped(*flags, env=env)["workers"] == " 4"
    got = dumped(*flags, "--workers", "5", env=env)
    assert (got["workers"], got["queue"], got["meter"]) == (" 5", " 44", " 2000ms")
    assert dumped("--workers=6", env={"DRIVEWATT_CONFIG": str(file)})["workers"] == " 6"


def test_a_dump_reads_back(tmp_path):
    _, text, _ = once("--simulate", "3", "--target", "/a", "--target", "/b", "--observe-only", "--dump-config")
    file = tmp_path / "c.conf"
    file.write_text(text)
    assert once("--config", str(file), "--dump-config")[1] == text
    assert once("--config", str(file), "--check-config")[0] == 0


@pytest.mark.parametrize(
    "text, what",
    [
        ("colour = red", "colour"),
        ("workers = many", "workers"),
        ("workers = 0", "workers"),
        ("workers", "key = value"),
        ("meter = 10", "meter"),
        ("gzip = perhaps", "gzip"),
        ("config = other", "config"),
        ("log-level = loud", "log-level"),
        ("simulate = 0", "simulate"),
        ("simulate = 5000", "simulate"),
        ("tls-cert = x", "tls-key"),
    ],
)
def test_bad_files_name_the_key_and_the_line(tmp_path, text, what):
    file = tmp_path / "c.conf"
    file.write_text("\n\n" + text + "\n")
    for flag in ("--check-config", "--dump-config"):
        code, out, err = once("--config", str(file), flag)
        assert code == 2 and out == ""
        assert what in err
        assert len(err.splitlines()) == 1
    if what not in ("log-level", "simulate", "tls-key"):
        assert "line 3" in err and str(file) in err


@pytest.mark.parametrize("flags", [("--colour", "red"), ("--workers",), ("workers",), ("--workers", "x"), ("--config", "/nothing")])
def test_bad_flags(flags):
    code, _, err = once(*flags, "--check-config") if flags != ("--workers",) else once(*flags)
    assert code == 2 and len(err.splitlines()) == 1


def test_bad_environment_names_the_key():
    code, _, err = once("--check-config", env={"DRIVEWATT_WORKERS": "many"})
    assert code == 2 and "workers" in err


# -- starts that fail -------------------------------------------------------------------------------


def test_a_port_in_use_is_told(tmp_path):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        address = f"127.0.0.1:{s.getsockname()[1]}"
        line = refused("--data-dir", str(tmp_path / "d"), "--listen", address)
    assert address in line and "in use" in line


def test_plaintext_beyond_loopback_is_refused(tmp_path):
    line = refused("--data-dir", str(tmp_path / "d"), "--listen", "0.0.0.0:0")
    assert "TLS" in line and "0.0.0.0:0" in line


def test_plaintext_beyond_loopback_when_allowed(start):
    service = start("--simulate", "1", "--allow-plaintext", listen="0.0.0.0:0")
    port = service.url.rsplit(":", 1)[1]
    assert requests.get(f"http://127.0.0.1:{port}/healthz", timeout=10).status_code == 200
    service.url = f"http://127.0.0.1:{port}"


def test_a_data_dir_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    line = refused("--data-dir", str(tmp_path / "file" / "d"))
    assert str(tmp_path / "file") in line
    line = refused("--data-dir", "/proc/drivewatt")
    assert "/proc/drivewatt" in line


def test_an_account_that_is_not_there(tmp_path):
    assert "no-such-user" in refused("--data-dir", str(tmp_path / "d"), "--user", "no-such-user")


def test_no_shared_account_unasked(tmp_path):
    """Where nobody has made the account drivewatt."""
    with open("/etc/passwd", encoding="utf-8") as f:
        (tmp_path / "passwd").write_text("".join(line for line in f if not line.startswith("drivewatt:")))
    mount = ("unshare", "-m", "sh", "-c", f'mount --bind {tmp_path}/passwd /etc/passwd && exec "$@"', "sh")
    command = [*mount, BINARY, "--listen", "127.0.0.1:0", "--simulate", "1", "--data-dir", str(tmp_path / "d")]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("DRIVEWATT_")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30)
    assert done.returncode == 1 and "useradd --system drivewatt" in done.stderr, done.stderr
    assert not os.path.exists(tmp_path / "d" / "control.db")


def test_ready_means_that_the_administrator_can_log_in(start):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        listen = "%s:%d" % s.getsockname()
    seen = []

    def is_ready():
        try:
            return requests.get(f"http://{listen}/readyz", timeout=10).status_code == 200
        except requests.ConnectionError:
            return False

    def watch():
        wait_until(is_ready, 60, "readiness")
        auth = ("admin", PASSWORD)
        seen.append(requests.get(f"http://{listen}/api/v1/drives", auth=auth, timeout=30).status_code)

    watcher = threading.Thread(target=watch)
    watcher.start()
    start("--simulate", "1", listen=listen)
    watcher.join()
    assert seen == [200]


@pytest.mark.parametrize("name", ["control.db", "samples.db"])
def test_damaged_files_are_told(start, name):
    service = start("--simulate", "1")
    service.stop()
    path = os.path.join(service.data_dir, name)
    with open(path, "r+b") as f:
        f.write(b"this is no database " * 50)
    line = refused("--data-dir", service.data_dir)
    assert name in line
    with open(path, "rb") as f:
        assert f.read(20) == b"this is no database ", "a damaged file was replaced"


@pytest.mark.parametrize("beside", ["samples.db", "control.db-wal"])
def test_a_lost_control_store_is_no_new_installation(start, beside):
    service = start("--simulate", "1")
    service.stop()
    open(os.path.join(service.data_dir, "control.db"), "wb").close()
    os.rename(os.path.join(service.data_dir, "samples.db"), os.path.join(service.data_dir, beside))
    line = refused("--data-dir", service.data_dir)
    assert "control.db is empty" in line and "restore" in line
    assert os.path.getsize(os.path.join(service.data_dir, "control.db")) == 0


def test_a_newer_database_is_refused(start):
    service = start("--simulate", "1")
    service.stop()
    store = sqlite3.connect(os.path.join(service.data_dir, "control.db"))
    version = store.execute("SELECT max(version) FROM migration").fetchone()[0]
    store.execute("INSERT INTO migration VALUES (?, 'of-the-future', 0)", (version + 1,))
    store.commit()
    store.close()
    line = refused("--data-dir", service.data_dir)
    assert "control" in line and "newer" in line


def test_a_file_of_another_program_is_refused(start):
    service = start("--simulate", "1")
    service.stop()
    path = os.path.join(service.data_dir, "control.db")
    os.unlink(path)
    store = sqlite3.connect(path)
    store.execute("CREATE TABLE other (x)")
    store.close()
    assert "control.db" in refused("--data-dir", service.data_dir)


def test_two_daemons_do_not_share_a_directory(start):
    service = start("--simulate", "1")
    line = refused("--data-dir", service.data_dir)
    assert service.data_dir in line and "another process" in line
    assert service.get("/api/v1/system").status_code == 200


# -- the first password -----------------------------------------------------------------------------


def test_a_password_is_made_and_printed_once(start):
    service = start("--simulate", "1", password=None)
    made = [line for line in service.lines if "password" in line]
    assert len(made) == 1
    password = re.search(r"password (\S+)", made[0]).group(1)
    assert len(password) >= 16
    service.session.auth = ("admin", password)
    assert service.get("/api/v1/drives").status_code == 200
    service.stop()
    assert password not in service.log()
    service.start()
    assert not [line for line in service.lines if "password" in line]
    service.session.auth = ("admin", password)
    assert service.get("/api/v1/drives").status_code == 200


def test_a_start_that_fails_makes_no_password(start, tmp_path):
    """The first one that serves shows it."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        address = f"127.0.0.1:{s.getsockname()[1]}"
        code, out, err = once("--listen", address, "--simulate", "1", "--data-dir", str(tmp_path / "data"))
    assert code == 1 and address in err and "password" not in out + err
    service = start("--simulate", "1", password=None, data_dir=str(tmp_path))
    (line,) = [line for line in service.lines if "password" in line]
    service.session.auth = ("admin", re.search(r"password (\S+)", line).group(1))
    assert service.get("/api/v1/drives").status_code == 200


def test_a_password_from_a_file(start, tmp_path):
    file = tmp_path / "password"
    file.write_text("from-a-file\n")
    service = start("--simulate", "1", "--admin-password-file", str(file), password=None)
    service.session.auth = ("admin", "from-a-file")
    assert service.get("/api/v1/drives").status_code == 200


def test_a_short_password_is_refused(tmp_path):
    line = refused("--data-dir", str(tmp_path / "d"), env={"DRIVEWATT_ADMIN_PASSWORD": "short"})
    assert "password" in line


def test_the_environment_does_not_keep_the_password(start):
    service = start("--simulate", "1")
    for pid in [service.process.pid, *children(service.process.pid)]:
        with open(f"/proc/{pid}/environ", "rb") as f:
            assert PASSWORD.encode() not in f.read()
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            assert PASSWORD.encode() not in f.read()


# -- rights -----------------------------------------------------------------------------------------


def status(pid):
    with open(f"/proc/{pid}/status") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def account():
    return pwd.getpwnam(ACCOUNT)


@pytest.fixture
def processes(start):
    """The network process and its helper."""
    assert os.geteuid() == 0, "rights can only be given up by root"
    service = start("--simulate", "1")
    (helper,) = children(service.process.pid)
    return service, service.process.pid, helper


def test_the_network_process_has_no_rights(processes):
    _, pid, _ = processes
    s = status(pid)
    assert s["Uid"].split() == [str(account().pw_uid)] * 4
    assert s["Gid"].split() == [str(account().pw_gid)] * 4
    assert s["Groups"].strip() == ""
    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert int(s[name], 16) == 0, name
    assert s["NoNewPrivs"] == "1"
    for task in os.listdir(f"/proc/{pid}/task"):
        assert int(status(f"{pid}/task/{task}")["CapEff"], 16) == 0


def test_the_helper_has_no_network_and_few_rights(processes):
    _, pid, helper = processes
    assert os.readlink(f"/proc/{helper}/ns/net") != os.readlink(f"/proc/{pid}/ns/net")
    s = status(helper)
    cap_sys_admin, cap_sys_ptrace, cap_dac_read_search = 1 << 21, 1 << 19, 1 << 2
    assert int(s["CapEff"], 16) == cap_sys_admin
    assert int(s["CapPrm"], 16) == int(s["CapBnd"], 16) == cap_sys_admin | cap_sys_ptrace | cap_dac_read_search
    assert s["NoNewPrivs"] == "1"


def test_the_processes_hold_nothing_of_each_other(processes):
    service, pid, helper = processes
    names = [os.readlink(f"/proc/{helper}/fd/{fd}") for fd in os.listdir(f"/proc/{helper}/fd")]
    assert not [n for n in names if ".db" in n], names
    sockets = [n for n in names if n.startswith("socket:")]
    assert len(sockets) == 1, names
    names = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    assert not [n for n in names if n.startswith("/dev/nvme")]
    assert service.get("/healthz").status_code == 200


def test_the_files_are_their_owners_alone(processes):
    service, _, _ = processes
    for name in os.listdir(service.data_dir):
        at = os.stat(os.path.join(service.data_dir, name))
        assert at.st_uid == account().pw_uid, name
        if not os.path.isdir(os.path.join(service.data_dir, name)):
            assert at.st_mode & 0o077 == 0 or name == "tls-cert.pem", f"{name} {at.st_mode:o}"


@pytest.mark.parametrize(
    "flags, status, word", [(["--simulate", "1"], 200, "degraded"), ([], 503, "not_ready")], ids=["simulated", "real"]
)
def test_a_lost_helper_is_told_and_the_service_lives(start, flags, status, word):
    service = start(*flags)
    service.allowed.append("helper")
    (helper,) = children(service.process.pid)
    os.kill(helper, signal.SIGKILL)
    wait_until(lambda: "drivewatt_helper_lost_total 1" in service.get("/metrics").text)
    assert service.get("/api/v1/drives").status_code == 200
    ready = service.json("/readyz", status)
    assert (ready["status"], ready["helper"]) == (word, "lost")
    assert [r["part"] for r in ready["reasons"]] == ["helper"]


def test_the_helper_ends_with_the_network_process(start):
    service = start("--simulate", "1")
    (helper,) = children(service.process.pid)
    service.kill()
    wait_until(lambda: not os.path.exists(f"/proc/{helper}"), 15, "the helper ends")


# -- TLS --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture(scope="module")
def certificate(authority):
    return authority.issue_cert("127.0.0.1", "localhost")


@pytest.fixture
def tls_flags(certificate, tmp_path):
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    cert.write_bytes(b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
    certificate.private_key_pem.write_to_path(str(key))
    return ("--tls-cert", str(cert), "--tls-key", str(key))


def context_of(authority, low=ssl.TLSVersion.TLSv1_2, high=ssl.TLSVersion.TLSv1_3):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version, context.maximum_version = low, high
    authority.configure_trust(context)
    return context


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
def test_own_certificate(start, authority, tls_flags, version):
    service = start("--simulate", "1", *tls_flags)
    assert service.url.startswith("https://")
    with Connection(service.url, context=context_of(authority, version, version)) as c:
        c.request("GET", "/api/v1/drives")
        assert c.response().status == 200
        assert c.socket.version() == ("TLSv1.2" if version == ssl.TLSVersion.TLSv1_2 else "TLSv1.3")


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1], ids=["1.0", "1.1"])
def test_old_versions_are_refused(start, authority, tls_flags, version):
    service = start("--simulate", "1", *tls_flags)
    with pytest.raises((ssl.SSLError, ConnectionResetError)):
        Connection(service.url, context=context_of(authority, version, version))


@pytest.mark.parametrize("cipher", ["AES128-SHA", "AES256-GCM-SHA384", "ECDHE-ECDSA-AES256-SHA", "NULL-SHA256"])
def test_weak_ciphers_are_refused(start, authority, tls_flags, cipher):
    service = start("--simulate", "1", *tls_flags)
    context = context_of(authority, ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2)
    context.set_ciphers(cipher + ":@SECLEVEL=0")
    with pytest.raises((ssl.SSLError, ConnectionResetError)):
        Connection(service.url, context=context)


def test_plain_http_on_the_tls_port_is_refused(start, tls_flags):
    service = start("--simulate", "1", *tls_flags)
    with Connection(service.url) as c:
        c.request("GET", "/healthz")
        assert b" 200 " not in c.read_rest()


def test_self_signed_stays_the_same(start):
    service = start("--simulate", "1", "--tls-self-signed", listen="0.0.0.0:0")
    port = int(service.url.rsplit(":", 1)[1])
    first = ssl.get_server_certificate(("127.0.0.1", port))
    verify = os.path.join(service.data_dir, "tls-cert.pem")
    url = f"https://127.0.0.1:{port}/api/v1/drives"
    assert requests.get(url, auth=("admin", PASSWORD), verify=verify, timeout=20).status_code == 200
    assert os.stat(os.path.join(service.data_dir, "tls-key.pem")).st_mode & 0o077 == 0
    service.stop()
    service.start()
    assert ssl.get_server_certificate(("127.0.0.1", int(service.url.rsplit(":", 1)[1]))) == first


def test_bad_certificates_are_told(tmp_path, tls_flags):
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("nonsense")
    flags = ("--data-dir", str(tmp_path / "d"))
    assert refused(*flags, "--tls-cert", str(nonsense), "--tls-key", tls_flags[3])
    assert "/nothing.pem" in refused(*flags, "--tls-cert", "/nothing.pem", "--tls-key", tls_flags[3])


# -- listeners --------------------------------------------------------------------------------------


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def test_several_listeners(start):
    port = free_port()
    service = start("--simulate", "1", "--listen", f"127.0.0.2:{port}", "--listen", f"[::1]:{port}")
    for url in (service.url, f"http://127.0.0.2:{port}", f"http://[::1]:{port}"):
        assert requests.get(url + "/healthz", timeout=10).status_code == 200
    assert len([line for line in service.lines if line.startswith("drivewattd ready on")]) == 1


# -- observing --------------------------------------------------------------------------------------


def test_observe_only(start):
    service = start("--simulate", "1", "--observe-only")
    drive = service.drives()[0]
    assert service.json("/api/v1/system")["observe_only"] is True
    problem(service.put(drive["href"] + "/power/desired", {"state": 1}), 403)
    problem(service.post("/api/v1/benchmarks", {"drives": [drive["id"]], "workload": "seq-read-128k"}), 403)
    assert service.json(drive["href"] + "/power")["state"] == 0
    assert service.patch(drive["href"], {"labels": {"a": "b"}}).status_code == 200


def test_nothing_is_simulated_unasked(start):
    service = start()
    system = service.json("/api/v1/system")
    assert system["simulated"] is False and system["simulated_scale"] is None
    listed = service.json("/api/v1/drives")
    assert listed["items"] or listed["drives_reason"], "an empty list without a reason"
    assert not any(d["simulated"] for d in service.drives())
    power = service.json("/api/v1/hosts/local/power")
    assert power["power_w"] is None and power["reason"] and not power["simulated"]


# -- restart ----------------------------------------------------------------------------------------


def test_a_restart_keeps_everything(start):
    service = start("--simulate", "2", "--settle", "50ms")
    drive = service.drives()[0]
    service.patch(drive["href"], {"labels": {"rack": "r1"}})
    service.put(drive["href"] + "/power/desired", {"limit_w": 16})
    service.put("/api/v1/workloads/mine", {"pattern": "randread"})
    service.put("/api/v1/hosts/local/baseline", {"no_drives": {"w": 410, "uncertainty_w": 2}})
    bmc = {"url": "https://127.0.0.1:1", "username": "u", "password": "sealed-one", "tls": {"verify": "none"}}
    host = service.post("/api/v1/hosts", {"name": "other", "labels": {"x": "y"}, "bmc": bmc}).json()
    service.post("/api/v1/accounts", {"name": "reader", "password": "passpass1", "role": "ReadOnly"})
    service.post("/api/v1/tokens", {"name": "ci"})
    run = service.run(drives=[drive["id"]], workload="rand-read-4k", runtime_s=1)
    assert run["state"] == "completed", run["reason"]
    wait_until(lambda: service.json("/api/v1/series")["items"][0]["last_at"])
    paths = [
        "/api/v1/accounts",
        "/api/v1/tokens",
        "/api/v1/hosts",
        "/api/v1/hosts/local/baseline",
        "/api/v1/workloads",
        drive["href"] + "/power/desired",
        host["href"],
        run["href"],
        run["href"] + "/fio",
        run["href"] + "/series",
    ]
    before = {path: service.json(path) for path in paths}
    system = service.json("/api/v1/system")["id"]
    drives = {d["id"]: (d["serial"], d["labels"]) for d in service.drives()}
    service.stop()
    service.start()
    wait_until(lambda: service.json(drive["href"] + "/power")["in_sync"])
    assert {path: service.json(path) for path in paths} == before
    assert service.json("/api/v1/system")["id"] == system
    assert {d["id"]: (d["serial"], d["labels"]) for d in service.drives()} == drives
    assert service.get("/api/v1/drives", auth=("reader", "passpass1")).status_code == 200
    history = service.json("/api/v1/hosts/local/energy?from=-10m")
    assert history["total"]["energy_kwh"] > 0


def test_tags_of_lists_do_not_come_again(start):
    service = start("--simulate", "1")
    paths = ("/api/v1/drives", "/api/v1/hosts", "/api/v1/accounts")
    before = {p: service.get(p).headers["ETag"] for p in paths}
    service.stop()
    service.start()
    service.patch(service.drives()[0]["href"], {"labels": {"a": "b"}})
    for path in paths[:1]:
        assert service.get(path, headers={"If-None-Match": before[path]}).status_code == 200


# -- stop -------------------------------------------------------------------------------------------


def begin_run(service, **body):
    body = {"drives": [service.drives()[0]["id"]], "workload": "rand-read-4k", "runtime_s": 600, **body}
    path = service.post("/api/v1/benchmarks", body).headers["Location"]
    wait_until(lambda: service.json(path)["state"] == "running")
    return path


def stop_in_time(service):
    began = time.monotonic()
    service.stop()
    took = time.monotonic() - began
    assert took < STOP_WITHIN_S, f"the stop took {took:.1f} s"


def test_stop_while_a_run_a_stream_and_connections_are_open(start):
    service = start("--simulate", "2")
    path = begin_run(service, power_state=2)
    fio = fio_of(service)
    assert fio
    with Connection(service.url) as stream, Connection(service.url) as idle:
        stream.request("GET", "/api/v1/events", headers={"Accept": "text/event-stream"})
        stream.read_until(b"\r\n\r\n")
        idle.send(b"GET /healthz HTTP/1.1\r\n")
        stop_in_time(service)
    assert not os.path.exists(f"/proc/{fio}")
    service.start()
    assert service.json(path)["state"] == "interrupted"
    drive = service.json(path)["drives"][0]
    wait_until(lambda: service.json(f"/api/v1/drives/{drive}/power")["state"] == 0)


def test_stop_while_a_drive_does_not_answer():
    bed = Bed(1)
    flags = ("--drive-timeout", "60s", "--command-timeout", "60s", "--drain", "2s")
    service = Service(*flags, prefix=bed.prefix, env=bed.environment)
    try:
        service.start()
        drive = wait_until(service.drives)[0]
        bed.set(0, hang=1)
        statuses = []

        def put():
            with Connection(service.url, timeout_s=60) as c:
                headers = {"Content-Type": "application/json", "Content-Length": 11}
                c.request("PUT", drive["href"] + "/power/desired", headers=headers, body=b'{"state":1}')
                statuses.append(c.response().status)

        waiting = threading.Thread(target=put)
        waiting.start()
        wait_until(lambda: service.json(drive["href"] + "/power")["claims"])
        stop_in_time(service)
        waiting.join(30)
        assert statuses == [503]
        bed.set(0, hang=0)
        service.start()
        wait_until(lambda: service.drives() and service.json(drive["href"] + "/power")["state"] == 1)
    finally:
        bed.set(0, hang=0)
        service.close()
        bed.close()


def test_a_second_signal_ends_at_once(start):
    service = start("--simulate", "1")
    run = begin_run(service)
    wait_until(lambda: service.json(run)["live_read_bytes_per_s"], what="fio at work, deaf when stopped")
    fio = fio_of(service)
    os.kill(fio, signal.SIGSTOP)
    service.terminate()
    wait_until(lambda: "stopping on signal" in service.log())
    began = time.monotonic()
    service.process.send_signal(signal.SIGTERM)
    code = service.process.wait(10)
    assert time.monotonic() - began < 2 or code == 0
    assert code == 1
    service.process = None
    wait_until(lambda: not os.path.exists(f"/proc/{fio}"), 15, "fio ends with it")


def test_interrupt_is_a_stop_too(start):
    service = start("--simulate", "1")
    service.process.send_signal(signal.SIGINT)
    service.terminated = True
    service.stop()


def test_no_requests_are_let_in_while_it_stops(start):
    service = start("--simulate", "1")
    begin_run(service)
    with Connection(service.url) as c:
        c.request("GET", "/healthz")
        assert c.response().status == 200
        service.terminate()
        wait_until(lambda: "stopping on signal" in service.log())
        with pytest.raises(OSError):
            for _ in range(100):
                socket.create_connection(("127.0.0.1", int(service.url.rsplit(":", 1)[1])), 1).close()
                threading.Event().wait(0.05)


def test_readiness(start):
    service = start("--simulate", "1")
    ready = service.json("/readyz")
    assert ready == {
        "control_store": "ok",
        "samples_store": "ok",
        "helper": "ok",
        "workers": "ok",
        "status": "ready",
        "reasons": [],
    }
    assert service.json("/healthz") == {"status": "ok"}
