#!/usr/bin/python3
"""Checks who includes whom.

Headers of a layer to the right, and third-party headers outside the one file that may have them,
are errors. So is a module of core that looks at one above it.
"""
import glob
import os
import re
import sys

# What the sources of a layer may include of other layers, contracts and private headers alike.
LAYERS = {
    "base": [],
    "model": ["base"],
    "priv-protocol": ["base", "model"],
    "priv": ["base", "model", "priv-protocol"],
    "db": ["base", "model"],
    "core": ["base", "model", "priv-protocol", "db"],
    "http": ["base", "model", "core"],
    "api": ["base", "model", "core", "http"],
    "server": ["base", "model", "priv-protocol", "priv", "db", "core", "http", "api"],
}

# The same between the modules of core: folders, and the files beside them by how they begin.
CORE = {
    "events": [],
    "httpc": [],
    "once": [],
    "privc": [],
    "tasks": ["events", "once", "httpc"],
    "accounts": ["events", "once"],
    "energy": ["events"],
    "bmc": ["events", "httpc", "once", "energy"],
    "drive": ["events", "privc", "energy"],
    "power": ["events", "tasks", "energy", "drive"],
    "meters": ["energy", "bmc", "privc"],
    "sim": ["energy", "bmc", "drive"],
    "bench": ["events", "once", "privc", "energy", "bmc", "drive", "power", "sim"],
}
CORE["remote"] = ["energy", "httpc"]
CORE["retention"] = ["events", "once", "energy"]
CORE["core"] = CORE["status"] = list(CORE) + ["core"]  # put them together
CORE_FILES = {"account": "accounts", "host": "bmc"} | {m: m for m in CORE}

# Files that may include a third-party header; a pattern with / matches from the root.
THIRD_PARTY = {
    "sqlite3.h": ["db/sqlite.c", "db/sqlite_private.h"],
    "curl/*": ["core/httpc.c"],
    "microhttpd.h": ["http/mhd.c"],
    "gnutls/*": ["http/tls.c"],
    "libnvme.h": ["priv/nvme.c"],
    "jansson.h": ["api/*", "core/*"],
    "sodium.h": ["base/*"],
    "uuid/*": ["base/*"],
    "uthash.h": ["*"],
    "utlist.h": ["*"],
    "zlib.h": ["db/*", "core/*", "http/*"],
    "openssl/*": ["server/tls.c", "core/httpc.c"],
    "blkid.h": ["priv/signature.c"],
    "snappy-c.h": ["core/remote/message.c"],
}

SYSTEM = re.compile(
    r"^(assert|complex|ctype|errno|fenv|float|inttypes|iso646|limits|locale|math|setjmp|signal"
    r"|stdalign|stdarg|stdatomic|stdbool|stddef|stdint|stdio|stdlib|stdnoreturn|string|strings"
    r"|threads|time|uchar|wchar|byteswap|dirent|dlfcn|endian|fcntl|fnmatch|getopt|glob|grp|ifaddrs"
    r"|libgen|mntent|netdb|poll|pthread|pwd|regex|sched|semaphore|spawn|syslog|termios|unistd|utime|malloc"
    r"|(arpa|asm|linux|net|netinet|sys)/.*)\.h$"
)

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)


def layer_of(path):
    """The layer of a path from the root or of an include, None if it belongs to none."""
    parts = path.split("/")
    if parts[0] == "include":
        parts = parts[1:]
    if parts[:2] in (["priv", "protocol.c"], ["priv", "protocol.h"]):
        return "priv-protocol"
    return parts[0] if len(parts) > 1 and parts[0] in LAYERS else None


def core_module_of(path):
    """ "core/bench/eta.h" and "core/bench.h" are both of bench; None outside core."""
    parts = path.split("/")
    if parts[0] == "include":
        parts = parts[1:]
    if parts[0] != "core" or len(parts) < 2:
        return None
    if len(parts) > 2:
        return parts[1]
    known = [begin for begin in CORE_FILES if parts[1].startswith(begin)]
    return CORE_FILES[max(known, key=len)] if known else parts[1]


def matches(pattern, path):
    if pattern.endswith("*"):
        return path.startswith(pattern[:-1])
    return path == pattern


def check_third_party(source, header):
    for pattern, users in THIRD_PARTY.items():
        if matches(pattern, header):
            if any(matches(user, source) for user in users):
                return None
            return f"<{header}> belongs into {', '.join(users)} alone"
    if SYSTEM.match(header):
        return None
    return f"<{header}> is in no table of {sys.argv[0]}"


def check_core(source, header):
    here, there = core_module_of(source), core_module_of(header)
    if not here or not there or here == there:
        return None
    if here not in CORE:
        return f"module {here} of core is in no table of {sys.argv[0]}"
    if there not in CORE[here]:
        return f'"{header}": core/{here} may not look at core/{there}'
    return None


def check_own(source, header):
    here, there = layer_of(source), layer_of(header)
    if there is None:
        generated = header in ("version.h",)
        return None if generated else f'"{header}": write it from the root or from include/'
    if there != here and there not in LAYERS[here]:
        return f'"{header}": {here} may not look at {there}'
    private = not os.path.exists(os.path.join("include", header))
    if private and there != here:
        return f'"{header}": private to {there}'
    return check_core(source, header)


def check_file(source):
    with open(source, encoding="utf-8") as f:
        text = f.read()
    for bracket, header in INCLUDE.findall(text):
        check = check_third_party if bracket == "<" else check_own
        fault = check(source, header)
        if fault:
            yield f"{source}: {fault}"


def sources():
    for layer in {layer.split("-")[0] for layer in LAYERS}:
        for folder in (layer, f"include/{layer}"):
            for ending in ("c", "h"):
                yield from glob.glob(f"{folder}/**/*.{ending}", recursive=True)


def main():
    faults = sorted(fault for source in sources() for fault in check_file(source))
    print("\n".join(faults), file=sys.stderr, end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
