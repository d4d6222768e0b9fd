"""HTTP by hand: what a client library would not send, or would hide."""

import base64
import socket
import ssl
from urllib.parse import urlsplit

from service import PASSWORD


def basic(name="admin", password=PASSWORD):
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


class Response:
    def __init__(self, version, status, headers, body):
        self.version = version
        self.status = status
        self.headers = headers  # in lower case; the last of a name
        self.body = body


class Connection:
    """One TCP connection to a service. Reads fail after timeout_s."""

    def __init__(self, url, timeout_s=20.0, context=None, source=None):
        parts = urlsplit(url)
        source = source and (source, 0)
        self.socket = socket.create_connection((parts.hostname, parts.port), timeout_s, source)
        if context:
            self.socket = context.wrap_socket(self.socket, server_hostname=parts.hostname)
        self.pending = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data if isinstance(data, bytes) else data.encode())

    def request(self, method, target, headers=(), body=b"", version="HTTP/1.1", credentials=True):
        lines = [f"{method} {target} {version}", "Host: test"]
        if credentials:
            lines.append("Authorization: " + (basic() if credentials is True else credentials))
        lines += [f"{name}: {value}" for name, value in dict(headers).items()]
        self.send("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    def fill(self):
        """False at the end of the stream."""
        try:
            data = self.socket.recv(65536)
        except (ConnectionResetError, ssl.SSLError):
            return False
        self.pending += data
        return bool(data)

    def read_until(self, mark):
        while mark not in self.pending:
            assert self.fill(), f"closed before {mark}: {self.pending[:200]}"
        text, self.pending = self.pending.split(mark, 1)
        return text

    def read_bytes(self, count):
        while len(self.pending) < count:
            assert self.fill(), "closed in the middle of a body"
        data, self.pending = self.pending[:count], self.pending[count:]
        return data

    def read_rest(self):
        while self.fill():
            pass
        data, self.pending = self.pending, b""
        return data

    def read_chunks(self):
        body = b""
        while True:
            size = int(self.read_until(b"\r\n"), 16)
            body += self.read_bytes(size)
            self.read_bytes(2)
            if size == 0:
                return body

    def response(self, method="GET"):
        head = self.read_until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        version, status = head[0].split(" ", 2)[:2]
        if status == "100":
            return self.response(method)
        headers = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in head[1:])}
        if method == "HEAD" or status in ("204", "304"):
            body = b""
        elif headers.get("transfer-encoding") == "chunked":
            body = self.read_chunks()
        elif "content-length" in headers:
            body = self.read_bytes(int(headers["content-length"]))
        else:
            body = self.read_rest()
        return Response(version, int(status), headers, body)

    def closed(self):
        """Waits for the peer to close; False when it sends something instead."""
        return not self.pending and not self.fill()


def ask(service, method, target, **kwargs):
    """One request on a connection of its own."""
    with Connection(service.url) as c:
        c.request(method, target, **kwargs)
        return c.response(method)
