"""A small Redfish BMC on loopback, with faults to order.

As a pytest fixture:  from fakebmc import FakeBmc;  with FakeBmc(watts=402) as bmc: bmc.url …
As a program:         fakebmc.py --watts 402 --shape power --plain
    prints one line of JSON (url, ca_file, fingerprint_sha256), then obeys lines on its standard
    input, "watts 317", "mode 503", each answered by "ok", until that is closed.

With --vendor it serves one of tests/data/bmc/services: dell8, dell9, dell10, ilo4, ilo5, ilo7,
openbmc, xcc, supermicro, ami, cisco, fujitsu, huawei, inspur, openubmc, nvidia, …; "set URI KEY
JSON" changes a property of a resource there, KEY being like PowerControl/0/PowerConsumedWatts.

A power limit may be changed (fakebmc_limits.py says how); "limits" is one of its modes.

Sessions: "sessions" is ok; full (503, RAC0218); none (404 everywhere: Basic alone); old (405 where
one looks first). "expire 403" ends all that are open, and answers 403 to their tokens.
"""
import argparse
import base64
import functools
import hashlib
import http.server
import json
import os
import secrets
import socket
import socketserver
import ssl
import sys
import tempfile
import threading

import fakebmc_limits
import trustme

CHASSIS = "/redfish/v1/Chassis/1"
MODES = ("ok", "401", "403", "404", "500", "503", "slow", "garbage", "html", "truncated", "redirect",
         "huge", "control_bytes", "error_first", "licence", "slash", "away")
SHAPES = ("environment", "power", "control", "sensor", "supplies", "none")
SESSION_MODES = ("ok", "full", "none", "old")
SERVICES = os.path.join(os.path.dirname(__file__), "..", "data", "bmc", "services")
SESSIONS = "/redfish/v1/SessionService/Sessions"
OLD_SESSIONS = "/redfish/v1/Sessions"


def load_service(vendor):
    with open(os.path.join(SERVICES, vendor + ".json"), encoding="utf-8") as f:
        return json.load(f)


@functools.lru_cache
def certify(name):
    """An authority and its certificate for the name: RSA keys take long to make."""
    ca = trustme.CA()
    return ca, ca.issue_cert(name)


def link(uri):
    return {"@odata.id": uri}


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def server_bind(self):
        """On all addresses of loopback, by which it stands in for many."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo")
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "localhost", self.server_address[1]

    def handle_error(self, *_):
        """Clients that leave early are what the tests are about."""


class Sessions:
    """The table of sessions, and how many came and went."""

    def __init__(self, mode):
        self.mode = mode
        self.tokens = {}  # of the open ones, by path
        self.opened = self.closed = self.refused = 0
        self.dead_status = 401

    def login(self, path):
        """(status, headers, body) of a POST with the right password."""
        path = path.rstrip("/")
        if self.mode == "none" or path not in (SESSIONS, OLD_SESSIONS):
            return 404, {}, {"error": {"code": "Base.1.8.ResourceMissing"}}
        if self.mode == "old" and path == SESSIONS:
            return 405, {"Allow": "GET"}, {"error": {"code": "Base.1.8.GeneralError"}}
        if self.mode == "full":
            self.refused += 1
            return 503, {"Retry-After": "30"}, {"error": {"@Message.ExtendedInfo": [
                {"MessageId": "IDRAC.2.8.RAC0218",
                 "Message": "The maximum number of user sessions is reached."}]}}
        self.opened += 1
        uri, token = f"{path}/{self.opened}", secrets.token_hex(16)
        self.tokens[uri] = token
        return 201, {"X-Auth-Token": token, "Location": uri}, {"@odata.id": uri}

    def logout(self, path, token):
        if token is None or self.tokens.get(path) != token:
            return 401
        del self.tokens[path]
        self.closed += 1
        return 204

    def expire(self, status):
        self.tokens.clear()
        self.dead_status = status


class FakeBmc:
    """watts may be a number, None (not reported) or a function that gives either."""

    def __init__(self, watts=402, mode="ok", shape="environment", username="root", password="calvin",
                 plain=False, name="127.0.0.1", power_state="On", limit_w=None, vendor=None,
                 sessions="ok", limits="ok", limit_range=None, tls12=False):
        self.watts, self.mode, self.shape = watts, mode, shape
        self.username, self.password = username, password
        self.power_state, self.limit_w, self.limit_range = power_state, limit_w, limit_range
        self.limit_mode = None  # ControlMode, once it was set
        self.limits = fakebmc_limits.Limits(self, limits)
        self.service = load_service(vendor) if vendor else None
        self.sessions = Sessions(sessions)
        self.requests = []  # paths, as they came
        self.connections = 0
        self.at_once = self.most_at_once = 0
        self.lock = threading.Lock()
        self.stopped = threading.Event()
        self.directory = tempfile.TemporaryDirectory(prefix="fakebmc-")
        self.ca_file = self.directory.name + "/ca.pem"
        self.fingerprint_sha256 = ""
        self.ciphers = set()  # that clients agreed on
        self.context = None if plain else self._certify(name)
        if tls12:
            self.context.maximum_version = ssl.TLSVersion.TLSv1_2
        self.alive = True
        self._listen(0)
        self.port = self.server.server_address[1]
        self.url = f"{'http' if plain else 'https'}://127.0.0.1:{self.port}"

    def _certify(self, name):
        ca, certificate = certify(name)
        ca.cert_pem.write_to_path(self.ca_file)
        der = ssl.PEM_cert_to_DER_cert(certificate.cert_chain_pems[0].bytes().decode())
        self.fingerprint_sha256 = hashlib.sha256(der).hexdigest()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(context)
        return context

    def _listen(self, port):
        self.server = Server(("", port), self._handler())
        if self.context:
            self.server.socket = self.context.wrap_socket(
                self.server.socket, server_side=True, do_handshake_on_connect=False)

    def _serve(self):
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def die(self):
        """Refuses connections and hangs up on those there are."""
        self.alive = False
        self.server.shutdown()
        self.server.server_close()

    def revive(self):
        """The same BMC again, at the same place."""
        self.alive = True
        self._listen(self.port)
        self._serve()

    def __enter__(self):
        self._serve()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.server.shutdown()
        self.server.server_close()
        self.directory.cleanup()

    def read_watts(self):
        return self.watts() if callable(self.watts) else self.watts

    def set(self, uri, key, value):
        """Changes a property of a vendor's service."""
        *way, last = (int(k) if k.isdigit() else k for k in key.split("/"))
        place = self.service[uri]
        for step in way:
            place = place[step]
        place[last] = value

    def resource(self, path):
        """The document at path, or None."""
        if self.service:
            return self.service.get(path.rstrip("/"))
        sources = {
            "environment": {"EnvironmentMetrics": link(CHASSIS + "/EnvironmentMetrics")},
            "power": {"Power": link(CHASSIS + "/Power")},
            "control": {"EnvironmentMetrics": link(CHASSIS + "/EnvironmentMetrics"),
                        "Controls": link(CHASSIS + "/Controls")},
            "sensor": {"EnvironmentMetrics": link(CHASSIS + "/EnvironmentMetrics"),
                       "Sensors": link(CHASSIS + "/Sensors")},
            "supplies": {"PowerSubsystem": link(CHASSIS + "/PowerSubsystem")},
            "none": {},
        }[self.shape]
        supplies = CHASSIS + "/PowerSubsystem/PowerSupplies"
        documents = {
            "/redfish/v1": lambda: {"Id": "RootService", "Chassis": link("/redfish/v1/Chassis"),
                                    "Links": {"Sessions": link(SESSIONS)}},
            "/redfish/v1/Chassis": lambda: {"Members": [link(CHASSIS)]},
            CHASSIS: lambda: {"Id": "1", "ChassisType": "RackMount", "PowerState": self.power_state,
                              **sources},
            CHASSIS + "/EnvironmentMetrics": self._environment,
            CHASSIS + "/Power": self._power,
            CHASSIS + "/Controls": lambda: {"Members": [link(CHASSIS + "/Controls/Fan0"),
                                                        link(CHASSIS + "/Controls/PowerLimit")]},
            CHASSIS + "/Controls/PowerLimit": lambda: {"ControlType": "Power", **self._limit()},
            CHASSIS + "/Sensors": lambda: {
                "Members": [link(CHASSIS + "/Sensors/fan0"),
                            link(CHASSIS + "/Sensors/total_power")]},
            CHASSIS + "/Sensors/total_power": lambda: {
                "ReadingType": "Power", "Reading": self.read_watts()},
            CHASSIS + "/PowerSubsystem": lambda: {"PowerSupplies": link(supplies)},
            supplies: lambda: {"Members": [link(supplies + "/0"), link(supplies + "/1")]},
        }
        for n in "01":
            documents[f"{supplies}/{n}"] = lambda n=n: {"Metrics": link(f"{supplies}/{n}/Metrics")}
            documents[f"{supplies}/{n}/Metrics"] = self._half
        path = path.rstrip("/")
        linked = tuple(source["@odata.id"] for source in sources.values())
        if path.startswith(CHASSIS + "/") and not path.startswith(linked):
            return None
        make = documents.get(path)
        return make() if make else None

    def _environment(self):
        document = {"Id": "EnvironmentMetrics"}
        watts = self.read_watts()
        if watts is not None and self.shape in ("environment", "control"):
            document["PowerWatts"] = {"Reading": watts}
        if self.shape != "control" and (self.limit_w is not None or self.limit_range):
            document["PowerLimitWatts"] = self._limit()
        return document

    def _limit(self):
        low, high = self.limit_range or (None, None)
        mode = self.limit_mode or ("Disabled" if self.limit_w is None else "Automatic")
        return {"ControlMode": mode, "SetPoint": self.limit_w, "AllowableMin": low, "AllowableMax": high}

    def refuses(self, body):
        """Of a change, what is no number where there must be one."""
        return self.shape == "environment" and not self.service and \
            (body.get("PowerLimitWatts") or {}).get("SetPoint", 0) is None

    def change(self, path, body):
        """Does what a PATCH asks for."""
        if self.service:
            fakebmc_limits.merge(self.service[path], body)
            return
        document = fakebmc_limits.merge(self.resource(path), body)
        if "PowerControl" in document:
            self.limit_w = document["PowerControl"][0]["PowerLimit"]["LimitInWatts"]
            return
        limit = document.get("PowerLimitWatts", document)
        self.limit_w, self.limit_mode = limit.get("SetPoint"), limit.get("ControlMode", self.limit_mode)

    def _power(self):
        return {"Id": "Power", "PowerControl": [
            {"MemberId": "0", "PowerConsumedWatts": self.read_watts(),
             "PowerLimit": {"LimitInWatts": self.limit_w}}]}

    def _half(self):
        watts = self.read_watts()
        return {"InputPowerWatts": {"Reading": None if watts is None else watts / 2}}

    def _handler(bmc):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self):
                super().setup()
                with bmc.lock:
                    bmc.connections += 1

            def log_message(self, *_):
                pass

            def handle_one(self, serve):
                if not bmc.alive:
                    self.close_connection = True
                    return
                with bmc.lock:
                    bmc.requests.append(self.path)
                    if bmc.context:
                        bmc.ciphers.add(self.connection.cipher()[0])
                    bmc.at_once += 1
                    bmc.most_at_once = max(bmc.most_at_once, bmc.at_once)
                try:
                    serve()
                finally:
                    with bmc.lock:
                        bmc.at_once -= 1

            def do_GET(self):
                self.handle_one(self.serve)

            def do_POST(self):
                self.handle_one(self.login)

            def do_PATCH(self):
                self.handle_one(self.change)

            def do_DELETE(self):
                self.handle_one(self.logout)

            def login(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if bmc.mode == "slow":
                    self.serve()
                elif (body.get("UserName"), body.get("Password")) != (bmc.username, bmc.password):
                    self.answer(401, {"error": {"code": "Base.1.8.NoValidSession"}})
                else:
                    with bmc.lock:
                        status, headers, document = bmc.sessions.login(self.path)
                    self.answer(status, document, headers)

            def logout(self):
                with bmc.lock:
                    status = bmc.sessions.logout(self.path, self.headers.get("X-Auth-Token"))
                self.answer(status, {})

            def change(self):
                path = self.path.rstrip("/")
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                document = bmc.resource(path)
                if self.refusal() or not document:
                    self.answer(self.refusal() or 404, {"error": {"code": "Base.1.8.GeneralError"}})
                    return
                digest = self.digest(document)
                with bmc.lock:
                    shown, _ = bmc.limits.tag_of(document, digest)
                    outcome = bmc.limits.patch(path, body, self.headers.get("If-Match"), shown, digest)
                if outcome:
                    self.answer(outcome[0], outcome[2], outcome[1])
                else:
                    self.close_connection = True

            @staticmethod
            def digest(document):
                return hashlib.md5(json.dumps(document).encode()).hexdigest()

            def serve(self):
                mode = bmc.mode
                if mode == "slow":
                    bmc.stopped.wait(60)
                    self.close_connection = True
                elif mode.isdigit():
                    self.answer(int(mode), {"error": {"code": "Base.1.8.GeneralError"}})
                elif mode == "licence":
                    self.answer(403, {"error": {"@Message.ExtendedInfo": [
                        {"MessageId": "IDRAC.2.8.SWC0242",
                         "Message": "A required license is missing or expired."}]}})
                elif mode == "redirect":
                    self.answer(302, {}, {"Location": "/elsewhere"})
                elif mode == "away":
                    self.answer(302, {}, {"Location": "https://bmc.example" + self.path})
                elif mode == "slash" and not self.path.endswith("/"):
                    self.answer(301, {}, {"Location": bmc.url + self.path + "/"})
                elif self.path.rstrip("/") != "/redfish/v1" and self.refusal():
                    self.answer(self.refusal(), {"error": {"code": "Base.1.8.NoValidSession"}})
                else:
                    with bmc.lock:
                        bmc.limits.look()
                        followed = bmc.limits.follow(self.path)
                    document = bmc.resource(self.path)
                    if followed:
                        self.answer(*followed)
                    else:
                        self.answer(200 if document else 404,
                                    document or {"error": {"code": "Base.1.8.ResourceMissing"}})

            def refusal(self):
                """The status for who has no business here, or None."""
                token = self.headers.get("X-Auth-Token")
                if token:
                    with bmc.lock:
                        alive = token in bmc.sessions.tokens.values()
                        return None if alive else bmc.sessions.dead_status
                return None if self.has_password() else 401

            def has_password(self):
                wanted = base64.b64encode(f"{bmc.username}:{bmc.password}".encode()).decode()
                return self.headers.get("Authorization") == f"Basic {wanted}"

            def answer(self, status, document, headers=None):
                tag, document = bmc.limits.tag_of(document, self.digest(document))
                body = json.dumps(document).encode() if status != 204 else b""
                if status == 200:
                    body = self.spoil(body)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("OData-Version", "4.0")
                if tag:
                    self.send_header("ETag", tag)
                if status != 204:
                    self.send_header("Content-Length", str(len(body)))
                for key, value in (headers or {}).items():
                    self.send_header(key, value)
                self.end_headers()
                if bmc.mode == "truncated" and status == 200:
                    body = body[:-5]
                    self.close_connection = True
                self.wfile.write(body)

            def spoil(self, body):
                return {
                    "garbage": b"\x00\xff{]" * 10,
                    "html": b"<!DOCTYPE html><html>session expired</html>",
                    "huge": b" " * (8 << 20) + body,
                    "control_bytes": body[:-1] + b', "Note": "a\rb\xff"}',
                    "error_first": b'{"error":{"code":"Base.1.8.GeneralError"}}\n' + body,
                }.get(bmc.mode, body)

        return Handler


def obey(bmc, line):
    key, _, value = line.partition(" ")
    if key == "watts":
        bmc.watts = None if value == "none" else float(value)
    elif key == "mode" and value in MODES:
        bmc.mode = value
    elif key == "shape" and value in SHAPES:
        bmc.shape = value
    elif key == "set" and bmc.service:
        uri, name, text = value.split(" ", 2)
        bmc.set(uri, name, json.loads(text))
    elif key == "sessions" and value in SESSION_MODES:
        bmc.sessions.mode = value
    elif key == "limits" and value in fakebmc_limits.MODES:
        bmc.limits.mode = value
    elif key == "expire":
        bmc.sessions.expire(int(value))
    elif key == "session_stats":
        return "%d %d %d" % (bmc.sessions.opened, bmc.sessions.closed, bmc.sessions.refused)
    elif key in ("power_state", "password"):
        setattr(bmc, key, value)
    elif key == "changes":
        return "%d" % len(bmc.limits.changes)
    elif key == "stats":
        return "%d %d %d" % (len(bmc.requests), bmc.connections, bmc.most_at_once)
    else:
        return "what?"
    return "ok"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--watts", type=float, default=402)
    parser.add_argument("--mode", choices=MODES, default="ok")
    parser.add_argument("--shape", choices=SHAPES, default="environment")
    parser.add_argument("--username", default="root")
    parser.add_argument("--password", default="calvin")
    parser.add_argument("--plain", action="store_true", help="http instead of https")
    parser.add_argument("--tls12", action="store_true", help="no TLS 1.3")
    parser.add_argument("--vendor", help="serves the file of that name of tests/data/bmc/services")
    parser.add_argument("--limits", choices=fakebmc_limits.MODES, default="ok")
    parser.add_argument("--limit-w", type=float)
    parser.add_argument("--limit-range", type=float, nargs=2)
    parser.add_argument("--sessions", choices=SESSION_MODES, default="ok")
    parser.add_argument("--name", default="127.0.0.1", help="whom the certificate is for")
    options = vars(parser.parse_args())
    with FakeBmc(**options) as bmc:
        print(json.dumps({"url": bmc.url, "ca_file": bmc.ca_file,
                          "fingerprint_sha256": bmc.fingerprint_sha256}), flush=True)
        for line in sys.stdin:
            print(obey(bmc, line.strip()), flush=True)


if __name__ == "__main__":
    main()
