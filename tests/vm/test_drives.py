"""Drives as the kernel's driver and libnvme really show them."""

import json

import drives
import pytest
from guest import wait_until

SIZE = drives.DISK_MIB * drives.MIB


def nvme(drive, command, *arguments):
    """What nvme-cli reads of it."""
    line = ["nvme", command, f"/dev/{drive.name}", *arguments, "-o", "json"]
    return json.loads(drive.machine.run(" ".join(line)))


# -- what there is ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*drives.PLAIN, "empty", "large", "zoned"])
def test_a_drive_is_what_it_says_of_itself(find, machine, name):
    drive = find(name)
    d, said = drive.now(), nvme(drive, "id-ctrl")
    assert d["kind"] == "nvme" and d["transport"] == "pcie" and d["simulated"] is False
    assert (d["serial"], d["model"], d["firmware"]) == (said["sn"].strip(), said["mn"].strip(), said["fr"].strip())
    assert d["subsystem_nqn"] == said["subnqn"] and d["controller_id"] == said["cntlid"]
    assert d["serial_unique"]
    device = machine.run(f"basename $(readlink -f /sys/class/nvme/{d['name']}/device)")
    assert d["pci_address"] == device.strip()


def test_namespaces_are_the_kernels(find):
    steady, large = find("steady").now(), find("large").now()
    assert [(n["nsid"], n["size_bytes"], n["lba_bytes"]) for n in steady["namespaces"]] == [(1, SIZE, 512)]
    assert [(n["nsid"], n["size_bytes"], n["lba_bytes"]) for n in large["namespaces"]] == [(1, SIZE, 4096)]
    assert steady["namespaces"][0]["used_by"] == []


def test_a_controller_may_have_no_namespace(find):
    d = find("empty").now()
    assert d["namespaces"] == [] and d["capacity_bytes"] == 0
    assert not d["in_use"] and d["temperature_c"] is not None


def test_two_controllers_share_a_namespace(find):
    first, second = find("pair", 0).now(), find("pair", 1).now()
    assert first["id"] != second["id"]
    assert first["subsystem_nqn"] == second["subsystem_nqn"]
    assert {first["controller_id"], second["controller_id"]} == {0, 1}
    assert first["namespaces"][0]["path"] == second["namespaces"][0]["path"]
    for d in (first, second):
        assert {u["kind"] for u in d["namespaces"][0]["used_by"]} == {"shared"}


def test_zones_are_seen(find):
    (namespace,) = find("zoned").now()["namespaces"]
    assert namespace["zoned"] and [u["kind"] for u in namespace["used_by"]] == ["zoned"]


# -- SMART and power ----------------------------------------------------------------------------------


def test_health_is_what_others_read(find):
    drive = find("steady")
    h, smart = drive.service.json(drive.href + "/health"), nvme(drive, "smart-log")
    assert h["temperature_c"] == pytest.approx(smart["temperature"] - 273.15)
    assert h["available_spare_pct"] == smart["avail_spare"]
    assert h["power_cycles"] == int(smart["power_cycles"]) and h["media_errors"] == int(smart["media_errors"])
    assert h["health"] == "ok" and h["critical_warnings"] == []
    thermal = drive.service.json(drive.href + "/thermal")
    assert (thermal["warning_c"], thermal["critical_c"]) == (70, 100)


def test_a_warning_is_told_while_it_lasts(find, machine):
    drive = find("steady")

    def warn(bits):
        machine.monitor("qom-set", path="/machine/peripheral/steady", property="smart_critical_warning", value=bits)

    warn(1 << 2)
    try:
        wait_until(lambda: drive.now()["health"] == "critical", what="the warning is seen")
        assert len(drive.service.json(drive.href + "/health")["critical_warnings"]) == 1
    finally:
        warn(0)
    wait_until(lambda: drive.now()["health"] == "ok", what="the warning is over")


def test_heat_over_the_threshold_is_a_warning(find, machine):
    drive = find("steady")
    feature = f"/dev/{drive.name} -f 4"
    before = machine.run(f"nvme get-feature {feature}").rpartition(":")[2].strip()
    machine.run(f"nvme set-feature {feature} --value=300")
    try:
        wait_until(lambda: drive.now()["health"] == "critical", what="the heat is seen")
        assert drive.service.json(drive.href + "/health")["critical_warnings"] == ["temperature"]
    finally:
        machine.run(f"nvme set-feature {feature} --value={int(before, 16)}")
    wait_until(lambda: drive.now()["health"] == "ok", what="it is over")


def test_the_power_table_is_the_controllers(find):
    drive = find("steady")
    p, said = drive.power(), nvme(drive, "id-ctrl")["psds"]
    assert [s["max_w"] for s in p["states"]] == [said[0]["max_power"] / 100] == [25]
    assert p["state"] == 0 and p["measured_w"] is None and p["measured_reason"]


def test_a_state_that_is_fixed_can_be_held_but_not_left(find):
    drive = find("steady")
    try:
        r = drive.service.put(drive.desired, {"limit_w": 30})
        assert r.status_code == 201, r.text
        assert r.json()["observed_state"] == 0 and r.json()["in_sync"]
        assert drive.service.put(drive.desired, {"limit_w": 10}).status_code == 400
    finally:
        assert drive.service.delete(drive.desired).status_code == 204
    assert drive.power()["claims"] == []


# -- what changes -------------------------------------------------------------------------------------


def test_a_format_shows(find, machine):
    drive = find("large")
    machine.run(f"mke2fs -F {drive.block}")
    wait_until(lambda: "ext" in " ".join(drive.uses()), what="the file system's signature is seen")
    machine.run(f"nvme format {drive.block} --lbaf=0 --force")
    wait_until(lambda: drive.now()["namespaces"][0]["lba_bytes"] == 512, what="the new block size is seen")
    wait_until(lambda: drive.uses() == [], what="the signature is gone")
    assert drive.now()["capacity_bytes"] == SIZE
    machine.run(f"nvme format {drive.block} --lbaf=4 --force")
    wait_until(lambda: drive.now()["namespaces"][0]["lba_bytes"] == 4096, what="the old block size is back")


def test_a_namespace_comes_and_goes(find, machine):
    drive = find("pair", 0)
    attach = f"/dev/{drive.name} --namespace-id=1 --controllers={drive.now()['controller_id']}"
    machine.run(f"nvme detach-ns {attach}")
    try:
        wait_until(lambda: drive.now()["namespaces"] == [], what="the namespace is missed")
        wait_until(lambda: drive.now()["capacity_bytes"] == 0, what="so is its capacity")
        assert drive.now()["state"] == "live"
        assert len(find("pair", 1).now()["namespaces"]) == 1
    finally:
        machine.run(f"nvme attach-ns {attach}")
    wait_until(lambda: len(drive.now()["namespaces"]) == 1, what="the namespace is back")


def test_a_reset_is_survived(find, machine):
    drive = find("steady")
    before = drive.now()
    machine.run(f"echo 1 >/sys/class/nvme/{before['name']}/reset_controller")
    wait_until(lambda: drive.now()["seen_at"] > before["seen_at"], what="it was asked again")
    drive.wait_state("live")
    assert drive.service.put(drive.desired, {"state": 0}).status_code == 201
    assert drive.service.delete(drive.desired).status_code == 204
