import os
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "http")]

import pytest  # noqa: E402
from service import Service, wait_until  # noqa: E402


@pytest.fixture(scope="module")
def service():
    service = Service("--simulate", "2", "--settle", "0").start()
    wait_until(lambda: all(service.json(d["href"] + "/power")["state"] == 0 for d in service.drives()), what="states")
    yield service
    service.close()
