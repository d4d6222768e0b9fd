#!/usr/bin/python3
"""kill -9 of the daemon under load, round after round: kill.py [ROUNDS [SEED]]

Needs root for the bed of made-up NVMe drives. DRIVEWATTD and BED name what was built.
"""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "http"))

from killing import kill_rounds  # noqa: E402

rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
seed = sys.argv[2] if len(sys.argv) > 2 else str(time.time_ns())
kill_rounds(rounds, seed)
print(f"{rounds} rounds of seed {seed}: nothing was lost")
