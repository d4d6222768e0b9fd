"""An NVMe/TCP target: one drive, a subsystem with one controller at a time and one namespace in
memory. It has what QEMU's drives lack: power states, of which each moves bytes at a pace of its
own, and faults at will. One thread serves a connection, which is a queue."""

import contextlib
import socket
import socketserver
import struct
import threading
import time
import uuid

LBA = 512
STATUS_OK, INVALID_OPCODE, INVALID_FIELD, INVALID_NAMESPACE = 0, 0x4001, 0x4002, 0x400B
INVALID_LOG, NOT_SAVEABLE, LBA_RANGE, RESERVED = 0x4109, 0x410D, 0x4080, 0x4083

# (max power in W, bytes per second)
STATES = ((25, 16 << 20), (15, 4 << 20), (10, 1 << 20))

ICREQ, ICRESP, COMMAND, RESPONSE, DATA = 0, 1, 4, 5, 7
LAST_DATA = 4
FABRICS, KEEP_ALIVE, ASYNC_EVENT = 0x7F, 0x18, 0x0C
PROPERTY_SET, CONNECT, PROPERTY_GET = 0, 1, 4
CAPABILITIES, VERSION, CONFIGURATION, STATUS = 0x00, 0x08, 0x14, 0x1C
SET_FEATURES, GET_FEATURES, GET_LOG, IDENTIFY = 0x09, 0x0A, 0x02, 0x06
FLUSH, WRITE, READ, ZEROES, DEALLOCATE = 0x00, 0x01, 0x02, 0x08, 0x09
REGISTER, REPORT, ACQUIRE, RELEASE = 0x0D, 0x0E, 0x11, 0x15
POWER, TEMPERATURE, QUEUES, EVENTS = 0x02, 0x04, 0x07, 0x0B

MAX_TRANSFER_SHIFT = 5  # 128 KiB, which all fits into a command: there is no R2T
MAX_TRANSFER = 4096 << MAX_TRANSFER_SHIFT


def put(buffer, offset, layout, *values):
    struct.pack_into("<" + layout, buffer, offset, *values)


class Command:
    """A submission queue entry and the data behind it."""

    def __init__(self, entry, data):
        self.opcode, _, self.id, self.nsid = struct.unpack_from("<BBHI", entry)
        self.fabrics_type = entry[4]
        self.length = struct.unpack_from("<I", entry, 32)[0]
        self.dwords = dict(zip(range(10, 16), struct.unpack_from("<6I", entry, 40)))
        self.data = data


class Controller:
    """What a connect of the admin queue makes and a reset takes away."""

    def __init__(self, number):
        self.number = number
        self.configuration = 0
        self.features = {POWER: 0, TEMPERATURE: 343, EVENTS: 0}

    def property(self, offset):
        ready = self.configuration & 1
        stopped = 8 if self.configuration >> 14 & 3 else 0
        capabilities = 127 | 1 << 16 | 20 << 24 | 1 << 37
        values = {CAPABILITIES: capabilities, VERSION: 0x10400, STATUS: ready | stopped}
        return {**values, CONFIGURATION: self.configuration}.get(offset, 0)


class Target:
    """A drive on the network. Its attributes may be changed at any time."""

    def __init__(self, serial, mib=64):
        self.serial = serial
        self.nqn = f"nqn.2014-08.invalid.drivewatt:{serial.lower()}"
        self.memory = bytearray(mib << 20)
        self.temperature_k = 311
        self.critical_warning = 0
        self.key = 0  # with which the one host is registered for reservations; 0 not
        self.reservation = 0  # its type; 0 none
        self.controller = Controller(0)
        self.commands = 0  # admin commands answered
        self._hung = False
        self._held = []  # answers that a hung drive owes
        self._next_io = 0.0
        self._lock = threading.Lock()
        self._connections = set()
        self._server = None
        self.port = 0
        self.appear()

    # -- faults ------------------------------------------------------------------------------------

    def appear(self):
        """Listens; at the same port as before."""
        target = self

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                with contextlib.suppress(OSError, EOFError):
                    Connection(target, self.request).serve()

        self._server = Server(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def vanish(self):
        """All connections break and nobody listens any more."""
        self._server.shutdown()
        self._server.server_close()
        with self._lock:
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    @contextlib.contextmanager
    def hung(self):
        """Admin commands are answered when it is over; the connection stays."""
        self._hung = True
        try:
            yield
        finally:
            with self._lock:
                self._hung = False
                held, self._held = self._held, []
            for answer in held:
                with contextlib.suppress(OSError):
                    answer()

    def hold(self, answer):
        """Keeps an answer back while the drive is hung; False when it is not."""
        with self._lock:
            if self._hung:
                self._held.append(answer)
            return self._hung

    def joined(self, connection, present):
        with self._lock:
            (self._connections.add if present else self._connections.discard)(connection)

    # -- the drive ---------------------------------------------------------------------------------

    @property
    def power_state(self):
        return self.controller.features[POWER] & 0x1F

    def connect(self, queue, number):
        if queue == 0:
            self.controller = Controller(self.controller.number % 0xFFEF + 1)
        return self.controller.number == number or queue == 0

    def pace(self, count):
        """Waits until the power state lets that many bytes through."""
        with self._lock:
            start = max(self._next_io, time.monotonic())
            self._next_io = start + count / STATES[self.power_state][1]
        threading.Event().wait(start - time.monotonic())

    def admin(self, command):
        """(status, result, data)"""
        handlers = {
            IDENTIFY: self._identify,
            SET_FEATURES: self._set_feature,
            GET_FEATURES: self._get_feature,
            GET_LOG: self._get_log,
        }
        self.commands += 1
        if command.opcode == KEEP_ALIVE:
            return STATUS_OK, 0, b""
        handler = handlers.get(command.opcode)
        return handler(command) if handler else (INVALID_OPCODE, 0, b"")

    def io(self, command):
        start = (command.dwords[11] << 32 | command.dwords[10]) * LBA
        count = ((command.dwords[12] & 0xFFFF) + 1) * LBA
        if command.opcode in (FLUSH, DEALLOCATE):
            return STATUS_OK, 0, b""
        if command.opcode in (REGISTER, REPORT, ACQUIRE, RELEASE):
            return self._reserve(command)
        if start + count > len(self.memory):
            return LBA_RANGE, 0, b""
        if command.opcode == ZEROES:
            self.memory[start : start + count] = bytes(count)
            return STATUS_OK, 0, b""
        if command.opcode not in (READ, WRITE):
            return INVALID_OPCODE, 0, b""
        self.pace(count)
        if command.opcode == READ:
            return STATUS_OK, 0, bytes(self.memory[start : start + count])
        if len(command.data) != count:
            return INVALID_FIELD, 0, b""
        self.memory[start : start + count] = command.data
        return STATUS_OK, 0, b""

    def _reserve(self, command):
        if command.opcode == REPORT:
            log = bytearray(4 * (command.dwords[10] + 1))
            put(log, 0, "IBH", 1, self.reservation, 1 if self.key else 0)
            return STATUS_OK, 0, bytes(log)
        action = command.dwords[10] & 7
        key, new_key = struct.unpack_from("<QQ", command.data.ljust(16, b"\0"))
        if command.opcode == REGISTER and action == 0:
            self.key = new_key
        elif key != self.key or not key or action > 1:
            return RESERVED, 0, b""
        elif command.opcode == REGISTER:
            self.key = self.reservation = 0
        else:
            self.reservation = command.dwords[10] >> 8 & 0xFF if command.opcode == ACQUIRE else 0
        return STATUS_OK, 0, b""

    # -- admin commands ----------------------------------------------------------------------------

    def _identify(self, command):
        makers = {0: self._namespace, 1: self._controller, 2: self._namespaces, 3: self._descriptors}
        maker = makers.get(command.dwords[10] & 0xFF)
        if not maker:
            return INVALID_FIELD, 0, b""
        if maker in (self._namespace, self._descriptors) and command.nsid != 1:
            return INVALID_NAMESPACE, 0, b""
        page = bytearray(4096)
        maker(command, page)
        return STATUS_OK, 0, bytes(page)

    def _controller(self, _command, page):
        texts = (self.serial.ljust(20).encode(), b"TCP 25W".ljust(40), b"1.0".ljust(8))
        put(page, 0, "HH20s40s8s", 0x1B36, 0x1AF4, *texts)
        put(page, 77, "BHI", MAX_TRANSFER_SHIFT, self.controller.number, 0x10400)
        put(page, 111, "B", 1)  # an I/O controller
        put(page, 259, "B", 3)  # events at once, less one
        put(page, 263, "B", len(STATES) - 1)
        put(page, 266, "HH", 343, 353)
        put(page, 320, "H", 10)  # keep alive in units of 100 ms
        put(page, 512, "BBHIH", 0x66, 0x44, 128, 1, 0x2C)  # entries, commands, namespaces; reservations, zeroes, deallocate
        put(page, 536, "I", 1)  # scatter lists
        put(page, 768, "256s", self.nqn.encode())
        put(page, 1792, "IIH", (64 + MAX_TRANSFER) // 16, 1, 0)  # capsules
        for i, (watts, _) in enumerate(STATES):
            put(page, 2048 + 32 * i, "HBBIIBBBB", watts * 100, 0, 0, 100, 100, i, i, i, i)

    def _namespace(self, _command, page):
        blocks = len(self.memory) // LBA
        put(page, 0, "QQQ", blocks, blocks, blocks)
        put(page, 31, "B", 0x7E)  # every type of reservation
        put(page, 128, "HBB", 0, 9, 0)  # one format: 512 bytes, no metadata

    def _namespaces(self, command, page):
        if command.nsid < 1:
            put(page, 0, "I", 1)

    def _descriptors(self, _command, page):
        put(page, 0, "BBH16s", 3, 16, 0, uuid.uuid5(uuid.NAMESPACE_DNS, self.nqn).bytes)

    def _set_feature(self, command):
        feature, value = command.dwords[10] & 0xFF, command.dwords[11]
        if feature == QUEUES:
            return STATUS_OK, value, b""
        if feature not in self.controller.features:
            return INVALID_FIELD, 0, b""
        if command.dwords[10] >> 31:
            return NOT_SAVEABLE, 0, b""
        if feature == POWER and value & 0x1F >= len(STATES):
            return INVALID_FIELD, 0, b""
        self.controller.features[feature] = value
        return STATUS_OK, 0, b""

    def _get_feature(self, command):
        feature, select = command.dwords[10] & 0xFF, command.dwords[10] >> 8 & 7
        if feature not in self.controller.features:
            return INVALID_FIELD, 0, b""
        if select == 3:
            return STATUS_OK, 4, b""  # changeable
        return STATUS_OK, (Controller(0) if select else self.controller).features[feature], b""

    def _get_log(self, command):
        count = ((command.dwords[11] & 0xFFFF) << 16 | command.dwords[10] >> 16) * 4 + 4
        if command.dwords[10] & 0xFF != 0x02 or count > 512:
            return INVALID_LOG, 0, b""
        log = bytearray(512)
        put(log, 0, "BHBBB", self.critical_warning, self.temperature_k, 100, 10, 3)
        put(log, 128, "Q", 1234)  # power-on hours
        return STATUS_OK, 0, bytes(log[:count])


class Connection:
    """A queue of the target's, from the first message to the last."""

    def __init__(self, target, stream):
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.target = target
        self.stream = stream
        self.queue = None
        self.sending = threading.Lock()

    def serve(self):
        self.target.joined(self.stream, True)
        try:
            while True:
                self._take(*self._read())
        finally:
            self.target.joined(self.stream, False)

    # -- messages ----------------------------------------------------------------------------------

    def _receive(self, count):
        parts = []
        while count:
            part = self.stream.recv(count)
            if not part:
                raise EOFError
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def _read(self):
        kind, _, header, offset, length = struct.unpack("<BBBBI", self._receive(8))
        if not 8 <= header <= length <= 256 + MAX_TRANSFER:
            raise EOFError
        body = self._receive(length - 8)
        return kind, body[: header - 8], body[offset - 8 :] if offset else b""

    def _send(self, kind, flags, header, data=b""):
        size = 8 + len(header)
        start = struct.pack("<BBBBI", kind, flags, size, size if data else 0, size + len(data))
        with self.sending:
            self.stream.sendall(start + header + data)

    def _answer(self, command, status, result=0, data=b""):
        if data:
            self._send(DATA, LAST_DATA, struct.pack("<HHIII", command.id, 0, 0, len(data), 0), data)
        self._send(RESPONSE, 0, struct.pack("<QHHHH", result, 0, self.queue or 0, command.id, status << 1))

    # -- commands ----------------------------------------------------------------------------------

    def _take(self, kind, header, data):
        if kind == ICREQ:
            self._send(ICRESP, 0, struct.pack("<HBBI112x", 0, 0, 0, MAX_TRANSFER))
        elif kind != COMMAND:
            raise EOFError
        else:
            self._perform(Command(header, data))

    def _perform(self, command):
        if command.opcode == FABRICS:
            self._answer(command, *self._fabrics(command))
        elif self.queue is None:
            raise EOFError
        elif self.queue:
            self._answer(command, *self.target.io(command))
        elif command.opcode == ASYNC_EVENT:
            pass  # there never is an event
        elif command.opcode == KEEP_ALIVE or not self.target.hold(lambda: self._admin(command)):
            self._admin(command)

    def _admin(self, command):
        self._answer(command, *self.target.admin(command))

    def _fabrics(self, command):
        controller, offset = self.target.controller, command.dwords[11]
        if command.fabrics_type == CONNECT:
            queue = command.dwords[10] >> 16
            if not self.target.connect(queue, struct.unpack_from("<H", command.data, 16)[0]):
                return INVALID_FIELD, 0
            self.queue = queue
            return STATUS_OK, self.target.controller.number
        if command.fabrics_type == PROPERTY_GET:
            return STATUS_OK, controller.property(offset)
        if command.fabrics_type == PROPERTY_SET and offset == CONFIGURATION:
            controller.configuration = command.dwords[12]
            return STATUS_OK, 0
        return INVALID_FIELD, 0
