"""What a service manager says and hears: readiness, the watchdog, credentials; the rights it leaves."""

import os
import socket

import pytest

HEARD_S = 30


@pytest.fixture
def manager(tmp_path):
    """A notification socket."""
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(str(path))
        path.chmod(0o777)
        s.settimeout(HEARD_S)
        yield s


def at(manager):
    return {"NOTIFY_SOCKET": manager.getsockname()}


def heard(manager):
    return manager.recv(4096).decode()


def test_it_tells_that_it_is_ready_and_that_it_stops(start, manager):
    service = start("--simulate", "1", env=at(manager))
    assert heard(manager) == "READY=1"
    service.stop()
    assert heard(manager) == "STOPPING=1"


@pytest.mark.parametrize("tls", [(), ("--tls-self-signed",)])
def test_the_watchdog_hears_from_it(start, manager, tls):
    service = start("--simulate", "1", *tls, env={**at(manager), "WATCHDOG_USEC": "300000"})
    assert [heard(manager) for _ in range(4)] == ["READY=1"] + 3 * ["WATCHDOG=1"]
    service.stop()
    last = "WATCHDOG=1"
    while last == "WATCHDOG=1":
        last = heard(manager)
    assert last == "STOPPING=1"


def test_the_password_is_taken_from_the_credentials(start, tmp_path):
    secret = "from-the-credentials"
    credential = tmp_path / "drivewatt.admin-password"
    credential.write_text(secret + "\n")
    credential.chmod(0o400)
    service = start("--simulate", "1", password=None, env={"CREDENTIALS_DIRECTORY": str(tmp_path)})
    assert not any("password" in line for line in service.lines)
    service.session.auth = ("admin", secret)
    assert service.get("/api/v1/system").status_code == 200


def test_credentials_without_a_password_are_none(start, tmp_path):
    service = start("--simulate", "1", password=None, env={"CREDENTIALS_DIRECTORY": os.fspath(tmp_path)})
    assert any("user admin, password" in line for line in service.lines)


def test_few_capabilities_are_enough_at_every_start(start):
    """The container's flags in docs/operations.md; deploy/drivewattd.service has two more."""
    kept = "-all,+sys_admin,+setuid,+setgid,+setpcap,+chown"
    service = start("--simulate", "1", prefix=["setpriv", "--bounding-set", kept, "--"])
    service.stop()
    service.start()
    assert service.get("/api/v1/system").json()["drives"] == 1
