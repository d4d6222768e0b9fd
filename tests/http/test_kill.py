"""Twenty rounds of kill -9; `make kill` does more. The seed is in the output of a failure."""

import time

from killing import kill_rounds


def test_what_was_acknowledged_survives_kill_9():
    kill_rounds(20, str(time.time_ns()))
