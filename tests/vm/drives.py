"""The test machine's NVMe drives as QEMU is told of them; a drive's serial is VM- and its name."""

import os

MIB = 1 << 20
DISK_MIB = 64

# Plain drives, each in a slot of its own.
PLAIN = ("steady", "used", "mobile")


def serial(name):
    return "VM-" + name.upper()


def disk(directory, name):
    """An empty disk, known as NAME-disk. What a killed machine has written matters to nobody."""
    path = os.path.join(directory, name + ".raw")
    with open(path, "wb") as f:
        f.truncate(DISK_MIB * MIB)
    file = f"file.driver=file,file.filename={path}"
    return ["-blockdev", f"driver=raw,node-name={name}-disk,cache.no-flush=on,{file}"]


def slot(number, name):
    return ["-device", f"pcie-root-port,id={name}-slot,chassis={number},slot={number}"]


def plain(name):
    """What a plain drive is made from, for the command line and for plugging it in later."""
    return {"driver": "nvme", "id": name, "serial": serial(name), "drive": name + "-disk", "bus": name + "-slot"}


def device(properties):
    properties = dict(properties)
    options = [properties.pop("driver"), *(f"{key}={value}" for key, value in properties.items())]
    return ["-device", ",".join(options)]


def controller(name, named=None, **more):
    return device({"driver": "nvme", "id": name, "serial": serial(named or name), **more})


def namespace(name, nsid, **more):
    return device({"driver": "nvme-ns", "drive": name + "-disk", "nsid": nsid, **more})


def arguments(directory):
    """For the command line: PLAIN ones and one of each odd kind."""
    result = []
    for number, name in enumerate(PLAIN, 1):
        result += disk(directory, name) + slot(number, name) + device(plain(name))
    # A second disk that waits for a slot to become free.
    result += disk(directory, "spare")
    result += controller("empty")
    # Two controllers of one subsystem that reach the same namespace.
    result += ["-device", "nvme-subsys,id=pair-subsystem,nqn=pair"]
    result += controller("pair0", "pair", subsys="pair-subsystem")
    result += controller("pair1", "pair", subsys="pair-subsystem")
    result += disk(directory, "pair") + namespace("pair", 1, bus="pair0", shared="on")
    result += controller("large") + disk(directory, "large")
    result += namespace("large", 1, bus="large", logical_block_size=4096, physical_block_size=4096)
    zones = {"zoned": "on", "zoned.zone_size": 8 * MIB, "zoned.zone_capacity": 8 * MIB}
    result += controller("zoned") + disk(directory, "zoned") + namespace("zoned", 1, bus="zoned", **zones)
    return result
