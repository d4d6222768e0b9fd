"""What a generic REST provider of Terraform does with deploy/terraform, played by plain HTTP."""

import re
import uuid

import pytest
from service import bearer

HEADERS = {"Content-Type": "application/json"}


class Resource:
    """One resource as such a provider holds it: a path and a body; all else is asked for."""

    def __init__(self, service, token, path, body):
        self.service = service
        self.auth = bearer(token)
        self.path = path
        self.body = body

    def _request(self, method, body=None):
        return self.service.request(method, self.path, json=body, auth=self.auth, headers=HEADERS)

    def put(self):
        return self._request("PUT", self.body)

    def read(self):
        return self._request("GET")

    def destroy(self):
        return self._request("DELETE")

    def drifts(self):
        """Whether what is there differs in anything that the configuration names."""
        return differs(self.body, self.read().json())


def version(response):
    """Of what is configured; readings beside it have a version of their own."""
    return response.headers["ETag"].strip('"').partition(".")[0]


def differs(wanted, shown):
    if isinstance(wanted, dict):
        return not isinstance(shown, dict) or any(differs(v, shown.get(k)) for k, v in wanted.items())
    return wanted != shown


@pytest.fixture(scope="module")
def token(service):
    return service.post("/api/v1/tokens", {"name": "terraform", "role": "Administrator"}).json()["token"]


RESOURCES = {
    "policy": (
        lambda: "/api/v1/policies/archive",
        {"priority": 10, "selector": {"labels": {"tier": "archive"}}, "desired": {"limit_w": 12}},
        {"priority": 10, "selector": {"labels": {"tier": "archive"}}, "desired": {"limit_w": 14}},
    ),
    "host": (
        lambda: f"/api/v1/hosts/{uuid.uuid4()}",
        {"name": "rack1-7", "labels": {"rack": "1"}, "bmc": None},
        {"name": "rack1-7", "labels": {"rack": "2"}, "bmc": None},
    ),
    "workload": (
        lambda: "/api/v1/workloads/nightly",
        {"pattern": "randread", "block_bytes": 4096, "iodepth": 8, "jobs": 2},
        {"pattern": "randread", "block_bytes": 8192, "iodepth": 8, "jobs": 2},
    ),
}


@pytest.mark.parametrize("kind", RESOURCES)
def test_a_resources_life(service, token, kind):
    path, first, second = RESOURCES[kind]
    r = Resource(service, token, path(), first)
    assert r.read().status_code == 404
    assert r.put().status_code == 201
    made = r.read()
    assert made.status_code == 200 and not r.drifts()
    # Applied again: as it was.
    assert r.put().status_code == 200
    assert version(r.read()) == version(made)
    r.body = second
    assert r.drifts()
    assert r.put().status_code == 200
    changed = r.read()
    assert version(changed) != version(made) and not r.drifts()
    assert r.destroy().status_code == 204
    assert r.read().status_code == 404
    # Gone already is what a second destroy finds.
    assert r.destroy().status_code == 404


def test_a_wish_of_a_drive_is_a_resource(service, token):
    drive = service.drives()[0]
    r = Resource(service, token, drive["href"] + "/power/desired", {"state": 1})
    assert r.read().status_code == 404
    assert r.put().status_code == 201 and not r.drifts()
    assert r.put().status_code == 200 and not r.drifts()
    assert r.destroy().status_code == 204
    assert r.read().status_code == 404


def test_the_example_names_what_there_is():
    """Its paths are operations of the API that are put and deleted."""
    with open("deploy/terraform/main.tf", encoding="utf-8") as f:
        paths = re.findall(r'create_path\s*=\s*"([^"]+)"', f.read())
    assert sorted(re.sub(r"\$\{.*?\}", "X", path) for path in paths) == [
        "/api/v1/drives/X/power/desired",
        "/api/v1/hosts/X",
        "/api/v1/policies/archive",
    ]
