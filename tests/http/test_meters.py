"""What the machine measures of itself: DCMI, the processors' counters, sensors, who it is."""

import os
import threading

import pytest
from fakebmc import FakeBmc
from service import wait_until

UUID = "4c4c4544-0034-4410-8038-b1c04f464633"
BOARD = "/redfish/v1/Systems/System.Embedded.1"


class Machine:
    """A made-up /sys, and an ipmitool."""

    def __init__(self, top):
        self.sys, self.tool, self.said = top / "sys", top / "ipmitool", top / "said"
        self.sys.mkdir()
        self.tool.write_text(f"#!/bin/sh\n. {self.said}\n")
        self.tool.chmod(0o755)
        self.says("exit 1")

    @property
    def flags(self):
        return ("--sysfs", str(self.sys), "--dcmi", str(self.tool))

    def says(self, script):
        """Written whole, since it is run meanwhile."""
        new = self.said.with_suffix(".new")
        new.write_text(script)
        os.rename(new, self.said)

    def takes(self, watts):
        self.says(f"echo 'Instantaneous power reading: {watts} Watts'")

    def file(self, path, text):
        path = self.sys / path
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(path.name + ".new")
        new.write_text(f"{text}\n")
        os.rename(new, path)


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def power(service):
    return service.json("/api/v1/hosts/local/power")


def shows(service, watts, source):
    def shown():
        p = power(service)
        return p if (p["power_w"], p["source"]) == (watts, source) else None

    return wait_until(shown, 60, f"{watts} W of {source}")


def settings(bmc):
    return {"url": bmc.url, "username": "root", "password": "calvin", "allow_plaintext": True}


def test_dcmi_needs_no_password(start, machine):
    machine.takes(217)
    service = start("--meter", "100ms", *machine.flags)
    p = shows(service, 217, "DCMI")
    assert p["quality"] == "bmc" and p["reason"] is None and p["simulated"] is False
    machine.takes(218)
    shows(service, 218, "DCMI")
    series = service.json("/api/v1/series?host=local&object=host&quantity=power")["items"]
    assert [(s["source"], s["quality"]) for s in series] == [("DCMI", "bmc")]
    service.allowed.append("DCMI: ")
    machine.says("echo 'Unable to open' >&2; exit 1")
    wait_until(lambda: power(service)["reason"] == "dcmi_error", 60)
    assert power(service)["power_w"] is None


def test_dcmi_stands_in_for_a_bmc(start, machine):
    machine.takes(217)
    service = start("--meter", "100ms", *machine.flags)
    shows(service, 217, "DCMI")
    with FakeBmc(watts=402, plain=True) as bmc:
        service.patch("/api/v1/hosts/local", {"bmc": settings(bmc)})
        shows(service, 402, "EnvironmentMetrics")
        bmc.mode = "503"
        wait_until(lambda: power(service)["reason"] == "bmc_busy" or power(service)["source"] == "DCMI", 60)
        shows(service, 217, "DCMI")
        bmc.mode, bmc.watts = "ok", 403
        shows(service, 403, "EnvironmentMetrics")


def test_without_dcmi_there_is_no_meter(start, machine):
    machine.says("echo 'Could not open device at /dev/ipmi0' >&2; exit 1")
    machine.file("class/powercap/intel-rapl:0/name", "package-0")
    machine.file("class/powercap/intel-rapl:0/max_energy_range_uj", 262143328850)
    machine.file("class/powercap/intel-rapl:0/energy_uj", 1000)
    service = start("--meter", "100ms", *machine.flags)
    energy = iter(range(1000, 10**12, 10**6))
    stop = threading.Event()

    def burn():
        while not stop.wait(0.02):
            machine.file("class/powercap/intel-rapl:0/energy_uj", next(energy))

    burner = threading.Thread(target=burn)
    burner.start()
    try:
        parts = wait_until(lambda: [c for c in power(service)["components"] if c["power_w"]], 60)
    finally:
        stop.set()
        burner.join()
    assert [(c["object"], c["source"], c["quality"]) for c in parts] == [("cpu", "rapl", "derived")]
    assert 0 < parts[0]["uncertainty_w"] < parts[0]["power_w"]
    p = power(service)
    assert p["power_w"] is None and p["reason"] == "no_meter", "what processors take is not what the host takes"
    series = wait_until(lambda: service.json("/api/v1/series?host=local&object=cpu")["items"])
    assert [(s["quantity"], s["quality"], s["source"]) for s in series] == [("power", "derived", "rapl")]
    assert service.json("/api/v1/series?host=local&object=host&quantity=power")["items"] == []


def test_sensors_are_parts(start, machine):
    machine.file("class/hwmon/hwmon3/name", "power_meter")
    machine.file("class/hwmon/hwmon3/power1_input", 212500000)
    machine.file("class/hwmon/hwmon3/power1_accuracy", "2%")
    service = start("--meter", "100ms", *machine.flags)
    part = wait_until(lambda: power(service)["components"], 60)[0]
    assert (part["object"], part["source"], part["quality"]) == ("power_meter/power1", "hwmon", "measured")
    assert part["power_w"] == 212.5 and part["uncertainty_w"] == 4.25
    assert power(service)["power_w"] is None
    r = service.get("/api/v1/series?host=local&object=power_meter/power1")
    assert wait_until(lambda: service.json("/api/v1/series?host=local&object=power_meter/power1")["items"]), r.text


def test_a_bmc_of_the_same_machine_is_known(start, machine):
    machine.file("class/dmi/id/product_uuid", UUID.upper())
    service = start("--meter", "100ms", *machine.flags)
    local = service.json("/api/v1/hosts/local")
    wait_until(lambda: power(service)["system_uuid"], 60)
    assert power(service)["same_as"] is None
    with FakeBmc(vendor="dell9", plain=True) as bmc:
        bmc.service[BOARD] = {"UUID": "44454c4c-3400-1044-8038-b1c04f464633", "PowerState": "On"}
        host = service.post("/api/v1/hosts", {"name": "twin", "bmc": settings(bmc)}).json()
        twin = wait_until(
            lambda: (lambda p: p if p["system_uuid"] else None)(service.json(host["href"] + "/power")), 60)
        assert twin["same_as"] == local["id"] and twin["host_interface"] is None


def test_simulated_drives_have_a_simulated_meter_alone(start, machine):
    machine.takes(217)
    service = start("--simulate", "2", "--meter", "100ms", *machine.flags)
    p = wait_until(lambda: (lambda p: p if p["power_w"] else None)(power(service)), 60)
    assert p["quality"] == "simulated" and p["components"] == []
