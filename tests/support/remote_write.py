"""A strict receiver of Prometheus remote write 1.0 on loopback: takes messages apart byte by byte.

    with Receiver() as r: r.url …;  r.samples: {labels as a sorted tuple: {ms: value}}

What breaks the protocol is answered 500 and kept in r.faults.
"""
import http.server
import ssl
import struct
import threading
import time

import trustme


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if not byte & 0x80:
            assert value < 1 << 64
            return value, at


def unsnappy(data):
    """The block format: a length, then literals and copies of what went before."""
    size, at = varint(data, 0)
    out = bytearray()
    while at < len(data):
        tag = data[at]
        at += 1
        if tag & 3 == 0:
            n = tag >> 2
            if n >= 60:
                extra = n - 59
                n = int.from_bytes(data[at : at + extra], "little")
                at += extra
            assert at + n + 1 <= len(data), "a literal beyond the end"
            out += data[at : at + n + 1]
            at += n + 1
            continue
        if tag & 3 == 1:
            n, offset = (tag >> 2 & 7) + 4, (tag >> 5) << 8 | data[at]
            at += 1
        else:
            width = 2 if tag & 3 == 2 else 4
            n, offset = (tag >> 2) + 1, int.from_bytes(data[at : at + width], "little")
            at += width
        assert 0 < offset <= len(out), "a copy from before the beginning"
        for _ in range(n):
            out.append(out[-offset])
    assert len(out) == size
    return bytes(out)


def fields(data):
    """(number, wire type, value) of a message."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        wire = key & 7
        if wire == 0:
            value, at = varint(data, at)
        elif wire == 1:
            value, at = data[at : at + 8], at + 8
        else:
            assert wire == 2, f"wire type {wire}"
            n, at = varint(data, at)
            value, at = data[at : at + n], at + n
            assert len(value) == n
        assert at <= len(data)
        yield key >> 3, wire, value


def label_of(data):
    parts = dict((number, value.decode()) for number, _, value in fields(data))
    assert set(parts) == {1, 2} and parts[1] and parts[2], "a label without name or value"
    return parts[1], parts[2]


def sample_of(data):
    parts = {number: (wire, value) for number, wire, value in fields(data)}
    assert {n: w for n, (w, _) in parts.items()} == {1: 1, 2: 0}
    return parts[2][1], struct.unpack("<d", parts[1][1])[0]


def series_of(message):
    """[(labels, [(ms, value)])], or an AssertionError."""
    found = []
    for number, wire, series in fields(message):
        assert (number, wire) == (1, 2)
        labels = [label_of(v) for n, _, v in fields(series) if n == 1]
        samples = [sample_of(v) for n, _, v in fields(series) if n == 2]
        names = [name for name, _ in labels]
        assert names == sorted(set(names)), f"labels out of order: {names}"
        assert "__name__" in names and samples
        times = [at for at, _ in samples]
        assert times == sorted(set(times)), "samples out of order"
        found.append((tuple(labels), samples))
    keys = [labels for labels, _ in found]
    assert len(keys) == len(set(keys)), "a series twice in one message"
    return found


HEADERS = {
    "Content-Type": "application/x-protobuf",
    "Content-Encoding": "snappy",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
}


class Receiver:
    def __init__(self, tls=False, port=0):
        self.lock = threading.Lock()
        self.samples, self.faults, self.requests = {}, [], []
        self.answers = []  # (status, headers), each for one request; then 204
        self.always = None  # the same for all
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 60

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, headers = receiver.take(self.headers, body)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if status != 204:
                    self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True

        self.server = Server(("127.0.0.1", port), Handler)
        self.port = self.server.server_address[1]
        self.ca = trustme.CA() if tls else None
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.ca.issue_cert("127.0.0.1").configure_cert(context)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}/api/v1/write"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, headers, body):
        with self.lock:
            self.requests.append((time.monotonic(), dict(headers), body))
            try:
                for name, value in HEADERS.items():
                    assert headers[name] == value, name
                series = series_of(unsnappy(body))
            except (AssertionError, IndexError, UnicodeDecodeError) as e:
                self.faults.append(repr(e))
                return 500, {}
            status, extra = self.always or (self.answers.pop(0) if self.answers else (204, {}))
            for labels, samples in series if status == 204 else []:
                for at, value in samples:
                    old = self.samples.setdefault(labels, {}).setdefault(at, value)
                    if old != value:
                        self.faults.append(f"{labels} at {at}: {old} and {value}")
            return status, extra

    def count(self):
        with self.lock:
            return sum(len(s) for s in self.samples.values())

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        assert self.faults == []
