"""What uses a namespace keeps benchmarks off: real mounts, partitions, holders, swap, claims."""

from collections import namedtuple

import pytest
from guest import wait_until

# How a use begins and ends, $D being the device and $N its name; what is told of it; whether it
# stops reading too; what else is shown.
Use = namedtuple("Use", "begin end told stops_reads also", defaults=(True, ""))

PARTITION = "printf 'o\\nn\\np\\n1\\n\\n\\nw\\n' | fdisk $D"
MAPPER = "dmsetup create upper --table \"0 65536 linear $D 0\""
LVM = """lvm pvcreate -ff -y $D
lvm vgcreate group $D
lvm lvcreate -an -Zn -L 32m -n volume group"""
RAID = "mdadm --create /dev/md0 --run --force --level=1 --raid-devices=1 $D"
EXPORT = """S=/sys/kernel/config/nvmet/subsystems/vm/namespaces/1
mkdir -p $S
echo $D >$S/device_path
echo 1 >$S/enable"""
UNEXPORT = """S=/sys/kernel/config/nvmet/subsystems/vm
rmdir $S/namespaces/1 $S"""
# What nobody writes down anywhere: the kernel keeps the device for itself.
CLAIM = "echo $D >/sys/block/zram0/backing_dev"
OPEN = "(exec 3<$D; exec sleep 1000) & echo $! >/tmp/opener"
CLOSE = "kill $(cat /tmp/opener)"

USES = {
    "mounted": Use("mke2fs -F $D; mount $D /mnt", "umount /mnt", "$N mounted on /mnt"),
    "mounted partition": Use(
        f"{PARTITION}; mke2fs -F ${{D}}p1; mount ${{D}}p1 /mnt", "umount /mnt", "$Np1 mounted on /mnt"
    ),
    "partitioned": Use(PARTITION, "true", "$N has 1 partition(s)", stops_reads=False),
    "mapped": Use(MAPPER, "dmsetup remove upper", "$N is held by dm-0 (upper)"),
    "mapped and mounted": Use(
        f"{MAPPER}; mke2fs -F /dev/dm-0; mount /dev/dm-0 /mnt",
        "umount /mnt; dmsetup remove upper",
        "dm-0 mounted on /mnt",
    ),
    "mapped twice": Use(
        f'{MAPPER}; dmsetup create other --table "0 65536 linear $D 65536"',
        "dmsetup remove upper other",
        "$N is held by dm-0 (upper)",
        also="$N is held by dm-1 (other)",
    ),
    "LVM": Use(f"{LVM}; lvm vgchange -ay group", "lvm vgremove -ff -y group", "$N is held by dm-0 (group-volume)"),
    "RAID": Use(RAID, "mdadm --stop /dev/md0", "$N is held by md0"),
    "swap": Use("mkswap $D; swapon $D", "swapoff $D", "swap on $N"),
    "looped": Use("losetup /dev/loop0 $D", "losetup -d /dev/loop0", "loop0 is made of $N"),
    "exported": Use(EXPORT, UNEXPORT, "nvmet exports $N"),
    "opened": Use(OPEN, CLOSE, "sleep"),
    "opened by its other name": Use(OPEN.replace("$D", "/dev/ng${N#nvme}"), CLOSE, "sleep"),
    "claimed": Use(CLAIM, "echo 1 >/sys/block/zram0/reset", "exclusive open"),
}

SIGNATURES = {"ext2": "mke2fs -F $D", "LVM2_member": LVM, "linux_raid_member": f"{RAID}; mdadm --stop /dev/md0"}


def refusal(service, **body):
    """Why a run is refused: at once, or, where only the helper knows better, when it would start."""
    r = service.post("/api/v1/benchmarks", {"runtime_s": 1, **body})
    if r.status_code != 202:
        assert r.status_code in (400, 403, 409), r.text
        return r.text
    path = r.headers["Location"]
    run = wait_until(lambda: (lambda run: run["ended_at"] and run)(service.json(path)), what="the run is over")
    assert run["state"] == "failed", run
    return run["reason"]


class Device:
    """A drive as what can be used."""

    def __init__(self, drive):
        self.drive = drive
        self.path = drive.block
        self.name = self.path.removeprefix("/dev/")

    def __call__(self, script):
        return self.drive.machine.run(f"D={self.path} N={self.name}\n{script}")

    def head(self):
        """What its first megabyte holds now, past the page cache."""
        return self("dd if=$D bs=1M count=1 iflag=direct 2>/dev/null | md5sum")


@pytest.fixture
def device(find):
    device = Device(find("used"))
    yield device
    device("dd if=/dev/zero of=$D bs=1M count=8 conv=fsync; blockdev --rereadpt $D")
    wait_until(lambda: device.drive.uses() == [], what="the drive is seen free again")


@pytest.mark.parametrize("kind", USES)
def test_what_is_used_is_left_alone(service, device, kind):
    use, drive = USES[kind], device.drive
    told, also = (text.replace("$N", device.name) for text in (use.told, use.also))
    device(use.begin)
    try:
        before = device.head()
        if kind != "claimed":  # only an attempt can find that out
            wait_until(lambda: all(text in " ".join(drive.uses()) for text in (told, also)), what="the use is shown")
        run = {"drives": [drive.id], "workload": "seq-write-128k", "confirm_destructive": [drive.serial]}
        assert told in refusal(service, **run, override_signature=True)
        if use.stops_reads:
            assert "in use" in refusal(service, drives=[drive.id], workload="rand-read-4k")
        assert device.head() == before
    finally:
        device(use.end)


@pytest.mark.parametrize("kind", SIGNATURES)
def test_a_signature_stops_writing_unless_overridden(service, device, light, kind):
    drive = device.drive
    device(SIGNATURES[kind])
    before = device.head()
    run = {"drives": [drive.id], "workload": light("write"), "confirm_destructive": [drive.serial]}
    wait_until(lambda: [kind in use for use in drive.uses()] == [True], what="the signature alone is seen")
    told = refusal(service, **run)
    assert "signature" in told and kind in told
    assert device.head() == before
    done = service.run(**run, runtime_s=1, max_write_bytes=1 << 20, override_signature=True)
    assert done["state"] == "completed", done["reason"]
    assert device.head() != before
