"""Hundreds of small Redfish BMCs in one process, each on a loopback address of its own.

fleet.py COUNT: prints one line of JSON (port), then obeys lines on its standard input: "served N"
answers with the watts that BMC N has told so far, each of which is told once.
"""

import asyncio
import json
import sys

CHASSIS = "/redfish/v1/Chassis/1"
METRICS = CHASSIS + "/EnvironmentMetrics"
STEPS = 500_000  # of a milliwatt each, before a BMC repeats itself


def address(n):
    return f"127.1.{n // 250}.{n % 250 + 1}"


def link(uri):
    return {"@odata.id": uri}


DOCUMENTS = {
    "/redfish/v1": {"Id": "RootService", "Chassis": link("/redfish/v1/Chassis")},
    "/redfish/v1/Chassis": {"Members": [link(CHASSIS)]},
    CHASSIS: {"Id": "1", "ChassisType": "RackMount", "PowerState": "On", "EnvironmentMetrics": link(METRICS)},
}


class Bmc:
    def __init__(self, n):
        self.base = 200 + n % 100
        self.told = 0

    def watts(self, k):
        """The k-th answer."""
        return self.base + k % STEPS / 1000

    def get(self, path):
        path = path.rstrip("/")
        if path == METRICS:
            self.told += 1
            return {"Id": "EnvironmentMetrics", "PowerWatts": {"Reading": self.watts(self.told - 1)}}
        return DOCUMENTS.get(path)

    async def serve(self, reader, writer):
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                method, path, _ = head.split(b" ", 2)
                found = self.get(path.decode()) if method == b"GET" else None
                body = json.dumps(found or {"error": {}}).encode()
                status = "200 OK" if found else "404 Not Found"
                writer.write(
                    f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n"
                    f"Content-Length: {len(body)}\r\n\r\n".encode() + body
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


async def main(count):
    loop = asyncio.get_running_loop()
    bmcs = [Bmc(n) for n in range(count)]
    port = 0
    for n, bmc in enumerate(bmcs):
        server = await asyncio.start_server(bmc.serve, address(n), port, limit=16384)
        port = server.sockets[0].getsockname()[1]
    print(json.dumps({"port": port}), flush=True)
    commands = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    while line := await commands.readline():
        bmc = bmcs[int(line.split()[1])]
        print(json.dumps([bmc.watts(k) for k in range(bmc.told)]), flush=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
