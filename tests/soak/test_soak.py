"""`make soak SOAK_S=1800` is half an hour of it."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "http"), os.path.join(HERE, "..", "support")]

from soak import soak  # noqa: E402


def test_nothing_grows_and_nothing_is_lost():
    soak(int(os.environ.get("SOAK_S") or 60))
