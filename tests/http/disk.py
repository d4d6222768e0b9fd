"""A daemon on a small disk of its own, and how to fill that. Needs root."""

import os

from service import Service, wait_until


def small_service(tmp_path, *flags):
    base = str(tmp_path)
    mount = ("unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size=12m none {base}/data && exec "$@"', "sh")
    os.mkdir(f"{base}/data")
    service = Service(*flags, data_dir=base, prefix=mount)
    service.allowed = ["space", "disk is full"]
    return service


def write_filler(service):
    path = f"/proc/{service.process.pid}/root{service.data_dir}/filler"
    with open(path, "wb", buffering=0) as f:
        for size in (65536, 4096, 512, 1):
            try:
                while True:
                    f.write(b"x" * size)
            except OSError:
                continue
    return path


def fill(service):
    """Writes a file until no change can be stored any more; returns its path. os.unlink makes room."""
    filler = write_filler(service)
    drive = service.drives()[0]["href"]
    labels = iter(range(1000))

    def is_full():
        body = {"labels": {"n": str(next(labels)) * 20}}
        return service.patch(drive, body).status_code == 507

    wait_until(is_full, 30, "the full disk")
    return filler
