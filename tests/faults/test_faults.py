"""Some rounds of each kind; `make faults FAULTS=1000` does more, SEED= the same again."""

import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "http"), os.path.join(HERE, "..", "support")]

from faults import fault_rounds, start_rounds  # noqa: E402

ROUNDS = int(os.environ.get("FAULTS") or 25)
SEED = os.environ.get("SEED") or str(time.time_ns())


def test_the_daemon_outlives_what_fails():
    fault_rounds(ROUNDS, SEED)


def test_a_start_without_memory_or_store_says_so():
    start_rounds(ROUNDS, SEED)
