"""Measures drivewattd and prints the tables of docs/performance.md.

What is compared is measured in turns within one run (A B A B …), and medians are told, since a
figure means something only beside the other one.
"""

import argparse
import os
import time

import answers
import changes
import faults
import life
import polls
import report
import streams

PARTS = {
    "cached": answers.cached,
    "modes": answers.modes,
    "uncached": answers.uncached,
    "put": changes.measure_put,
    "start": life.measure_start,
    "memory": life.measure_memory,
    "hung": faults.measure_hung,
    "polls": polls.measure_polls,
    "streams": streams.measure_streams,
}


def main():
    parser = argparse.ArgumentParser(prog="make bench ARGS=")
    parser.add_argument("dir", help=argparse.SUPPRESS)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}; none: all")
    parser.add_argument("--quick", action="store_true", help="one short round of each")
    parser.add_argument("--json", metavar="FILE", help="keeps all tables there too")
    o = parser.parse_intermixed_args()
    unknown = set(o.parts) - set(PARTS)
    if unknown:
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    o.rounds, o.few = (1, 1) if o.quick else (5, 3)
    o.seconds = 1
    o.bare = os.path.join(o.dir, "bare_mhd")
    o.bare_curl = os.path.join(o.dir, "bare_curl")
    o.fleet = os.path.join(o.dir, "bmc_fleet")
    os.chmod(o.dir, 0o755)
    for name in o.parts or PARTS:
        began = time.monotonic()
        PARTS[name](o)
        report.note(f"{name}: {time.monotonic() - began:.0f} s, load {os.getloadavg()[0]:.1f}")
    if o.json:
        report.save(o.json)


main()
