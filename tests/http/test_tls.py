"""HTTPS: certificates given, made and renewed, and what else is read again on SIGHUP."""

import os
import signal
import ssl
import time
from datetime import datetime, timezone
from urllib.parse import urlsplit

import pytest
import trustme
from raw import Connection
from service import Service, wait_until


class Authority:
    """A CA and the files of a server's certificate of it."""

    def __init__(self, directory):
        self.ca = trustme.CA()
        self.cert, self.key = os.path.join(directory, "cert.pem"), os.path.join(directory, "key.pem")

    def issue(self, **kwargs):
        """Writes a new certificate; returns it."""
        made = self.ca.issue_cert("127.0.0.1", **kwargs)
        write(self.cert, b"".join(b.bytes() for b in made.cert_chain_pems))
        write(self.key, made.private_key_pem.bytes())
        return made

    def context(self):
        context = ssl.create_default_context()
        self.ca.configure_trust(context)
        return context

    def flags(self):
        return ["--tls-cert", self.cert, "--tls-key", self.key]


def write(path, data):
    """Root's alone, as an operator would have it."""
    with open(path + ".new", "wb", opener=lambda p, f: os.open(p, f, 0o600)) as f:
        f.write(data)
    os.rename(path + ".new", path)


def shown(service):
    """The certificate that a new connection is shown (DER)."""
    parts = urlsplit(service.url)
    return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate((parts.hostname, parts.port)))


def trust_any(service):
    """For requests that are not about certificates."""
    service.session.verify = service.session.trust_env = False


def der(made):
    return ssl.PEM_cert_to_DER_cert(made.cert_chain_pems[0].bytes().decode())


def reload(service):
    """SIGHUP, and what the log says of it."""
    before = service.log().count("has read its files again")
    service.process.send_signal(signal.SIGHUP)
    wait_until(lambda: service.log().count("has read its files again") > before, what="the files are read again")
    return service.log().splitlines()[-1]


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path)


@pytest.fixture
def secure(start, authority):
    made = authority.issue()
    service = start("--simulate", "1", *authority.flags())
    trust_any(service)
    assert shown(service) == der(made)
    return service


def ask(connection, path="/api/v1/system"):
    connection.request("GET", path)
    return connection.response().status


def test_a_given_certificate_is_served(secure, authority):
    assert secure.url.startswith("https://")
    with Connection(secure.url, context=authority.context()) as c:
        assert ask(c) == 200
        assert c.socket.version() == "TLSv1.3"
    with Connection(secure.url) as plain:
        plain.send("GET /healthz HTTP/1.1\r\nHost: t\r\n\r\n")
        assert b" 200 " not in plain.read_rest()


def test_old_protocols_are_refused(secure, authority):
    context = authority.context()
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(ssl.SSLError):
        Connection(secure.url, context=context)


def test_a_renewed_certificate_is_served_without_a_restart(secure, authority):
    with Connection(secure.url, context=authority.context()) as standing:
        assert ask(standing) == 200
        for _ in range(2):
            made = authority.issue()
            assert "error" not in reload(secure)
            assert shown(secure) == der(made)
            with Connection(secure.url, context=authority.context()) as c:
                assert ask(c) == 200
            assert ask(standing) == 200, "a connection that stood was dropped"
    assert secure.process.poll() is None
    assert '"reloaded"' in secure.get("/api/v1/events?limit=1000", headers={"Accept": "application/json"}).text


def test_connections_are_not_dropped_while_certificates_change(secure, authority):
    standing = []
    try:
        for _ in range(8):
            authority.issue()
            standing.append(Connection(secure.url, context=authority.context()))
            secure.process.send_signal(signal.SIGHUP)
            assert all(ask(c) == 200 for c in standing)
    finally:
        for c in standing:
            c.socket.close()


@pytest.mark.parametrize("fault", ["other key", "no PEM", "gone", "cut"])
def test_a_bad_certificate_is_told_and_the_old_one_stays(secure, authority, fault):
    secure.allowed += ["the certificate"]
    good = shown(secure)
    if fault == "other key":
        write(authority.key, trustme.CA().issue_cert("127.0.0.1").private_key_pem.bytes())
    elif fault == "no PEM":
        write(authority.cert, b"not a certificate\n")
    elif fault == "gone":
        os.unlink(authority.key)
    else:
        with open(authority.cert, "rb") as f:
            write(authority.cert, f.read()[:100])
    assert "in part" in reload(secure)
    assert "the certificate stays as it was" in secure.log()
    assert shown(secure) == good
    made = authority.issue()
    assert "in part" not in reload(secure)
    assert shown(secure) == der(made)


def test_expiry_is_told(secure, authority):
    def not_after():
        (line,) = [s for s in secure.get("/metrics").text.splitlines() if s.startswith("drivewatt_tls_certificate_not")]
        return float(line.split()[1])

    first = not_after()
    assert first > time.time()
    soon = int(time.time()) + 86400
    authority.issue(not_after=datetime.fromtimestamp(soon, timezone.utc))
    reload(secure)
    assert not_after() == soon != first


def test_a_key_of_another_certificate_is_refused_at_the_start(authority):
    authority.issue()
    write(authority.key, trustme.CA().issue_cert("127.0.0.1").private_key_pem.bytes())
    service = Service("--simulate", "1", *authority.flags())
    with pytest.raises(AssertionError, match="not the certificate's"):
        service.start()
    service.close()


def test_a_certificate_of_ones_own_is_made_and_kept(start):
    service = start("--simulate", "1", "--tls-self-signed")
    cert, key = (os.path.join(service.data_dir, n) for n in ("tls-cert.pem", "tls-key.pem"))
    assert os.stat(key).st_mode & 0o777 == 0o600
    context = ssl.create_default_context(cafile=cert)
    with Connection(service.url, context=context) as c:
        assert ask(c) == 200
    first = shown(service)
    service.stop()
    service.start()
    assert shown(service) == first
    # Another one in its place is taken like a renewed one.
    os.unlink(cert)
    os.unlink(key)
    reload(service)
    assert shown(service) != first


# -- the configuration --------------------------------------------------------------------------------


def test_the_configuration_is_read_again(start, tmp_path):
    path = str(tmp_path / "drivewatt.conf")
    write(path, b"log-level = warning\nworkers = 4\n")
    service = start("--config", path, "--simulate", "1")
    write(path, b"log-level = info\nworkers = 6\n")
    reload(service)
    log = service.log()
    assert "workers has changed: it takes effect at the next start" in log
    assert "log-level has changed" in log and log.count("takes effect at the next start") == 1
    write(path, b"log-level = info\nworkers = none\n")
    service.allowed.append("the configuration")
    assert "in part" in reload(service)
    assert "line 2" in service.log() and "the configuration stays as it was" in service.log()
    assert service.get("/api/v1/system").status_code == 200


def test_sighup_without_anything_to_read_does_no_harm(start):
    service = start("--simulate", "1")
    for _ in range(5):
        reload(service)
    assert service.get("/api/v1/system").status_code == 200
