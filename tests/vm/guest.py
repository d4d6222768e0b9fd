"""The daemon in the test machine, asked from outside; see tests/http/service.py."""

import functools

import requests
import service
from service import PASSWORD, Service

PORT = 8484

# Asking takes time away from those that are waited for: an emulated machine is slow.
wait_until = functools.partial(service.wait_until, timeout_s=90, pause_s=0.1)


class GuestService(Service):
    """As the service of the HTTP tests, but that it lives in another machine."""

    def __init__(self, machine, *flags):
        self.machine = machine
        self.flags = list(flags)
        self.password = PASSWORD
        self.allowed = []
        self.url = f"http://127.0.0.1:{machine.forward(PORT)}"

    def start(self):
        flags = ["--listen", f"0.0.0.0:{PORT}", "--allow-plaintext", "--data-dir", "/var/lib/drivewatt", *self.flags]
        self.machine.run(
            "rm -f /tmp/out /tmp/status\n"
            f"export DRIVEWATT_ADMIN_PASSWORD={self.password}\n"
            f"(sh -c 'echo $$ >/tmp/pid; exec drivewattd {' '.join(flags)}' >/tmp/out 2>>/tmp/log &&\n"
            "echo 0 >/tmp/status || echo $? >/tmp/status) &"
        )
        self.session = requests.Session()
        self.session.auth = ("admin", self.password)
        wait_until(self._is_ready, what="drivewattd is ready")
        return self

    def _is_ready(self):
        status, lines = self._status(), self.machine.run("cat /tmp/out", check=False)
        assert not status, f"exit status {status}: {self.log()}"
        return "drivewattd ready on" in lines

    def _status(self):
        """Its exit status, empty while it lives."""
        return self.machine.run("cat /tmp/status 2>/dev/null", check=False).strip()

    def stop(self, check=True):
        self.session.close()
        self.machine.run("kill $(cat /tmp/pid)")
        status = wait_until(self._status, what="drivewattd has stopped")
        if check:
            assert status == "0", f"exit status {status}: {self.log()[-4000:]}"
            self.check_log()

    def close(self):
        self.stop()

    def log(self):
        return self.machine.run("cat /tmp/log")


class Drive:
    """One drive as the daemon shows it and as the machine has it."""

    def __init__(self, service, drive_id):
        self.service = service
        self.machine = service.machine
        self.id = drive_id
        self.href = f"/api/v1/drives/{drive_id}"
        self.desired = self.href + "/power/desired"

    def now(self):
        return self.service.json(self.href)

    def power(self):
        return self.service.json(self.href + "/power")

    @property
    def serial(self):
        return self.now()["serial"]

    @property
    def name(self):
        """The kernel's, which changes when the drive is away in between."""
        return self.now()["name"]

    @property
    def block(self):
        return self.now()["namespaces"][0]["path"]

    def wait_identified(self):
        wait_until(lambda: self.now()["subsystem_nqn"], what=f"{self.href} is identified")

    def uses(self):
        return [use["detail"] for n in self.now()["namespaces"] for use in n["used_by"]]

    def wait_state(self, state):
        wait_until(lambda: self.now()["state"] == state, what=f"{self.href} is {state}")
