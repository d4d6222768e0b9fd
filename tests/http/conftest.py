import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))

import contract  # noqa: E402
from service import Service  # noqa: E402


@pytest.fixture
def tmp_path(tmp_path):
    """As pytest's own, but one that everybody may pass through: the daemon is not root."""
    for directory in (tmp_path, *tmp_path.parents):
        if directory.stat().st_mode & 0o777 == 0o700:
            directory.chmod(0o755)
    return tmp_path


@pytest.fixture
def start():
    """Starts daemons with the given flags; all are stopped and checked at the end."""
    services = []

    def make(*flags, **kwargs):
        service = Service(*flags, **kwargs)
        services.append(service)
        return service.start()

    yield make
    failures = []
    for service in services:
        try:
            service.close()
        except AssertionError as e:
            failures.append(str(e))
    assert not failures, "\n".join(failures)


@pytest.fixture(scope="module")
def simulated():
    """One daemon with four simulated drives, shared by the tests of a module."""
    service = Service("--simulate", "4").start()
    yield service
    service.close()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """What one of several workers has called."""
    contract.SEEN.update(node.workeroutput.get("operations", ()) if hasattr(node, "workeroutput") else ())


def pytest_sessionfinish(session, exitstatus):
    """Every operation must have been called by some test of a whole run."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["operations"] = sorted(contract.SEEN)
        return
    if exitstatus != 0 or session.config.option.keyword or len(session.config.args) > 1:
        return
    if not os.path.isdir(session.config.args[0]):
        return
    missing = sorted(set(contract.OPERATIONS) - contract.SEEN)
    if missing:
        print(f"\noperations that no test called: {', '.join(missing)}")
        session.exitstatus = 1
