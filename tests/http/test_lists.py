"""What all lists share: pages, cursors, filters by things that are not there."""

import contract
import pytest
from raw import ask
from service import PASSWORD, Service, problem, wait_until

NOBODY = "00000000-0000-4000-8000-000000000000"
# Paths of lists with the usual pages.
LISTS = sorted(
    path
    for method, path, op in contract.OPERATIONS.values()
    if method == "GET" and {"$ref": "#/components/parameters/Cursor"} in op.get("parameters", [])
)
NUMBERED = ("/api/v1/events", "/api/v1/audit")


@pytest.fixture(scope="module")
def service():
    service = Service("--simulate", "3").start()
    wait_until(lambda: len(service.drives()) == 3)
    for name in ("a", "b", "n" * 64):
        body = {"name": name, "password": PASSWORD, "role": "ReadOnly"}
        assert service.post("/api/v1/accounts", body).status_code == 201
        assert service.post("/api/v1/tokens", {"name": name}).status_code == 201
    wait_until(lambda: len(service.json("/api/v1/series")["items"]) > 1)
    yield service
    service.close()


def real(service, path):
    """A path of a list that is there; None where the list needs a thing that is not."""
    if "{" not in path:
        return path
    if "/series/" in path:
        return path.replace("{id}", service.json("/api/v1/series")["items"][0]["id"])
    return None


def test_there_are_lists():
    assert {"/api/v1/drives", "/api/v1/accounts", "/api/v1/benchmarks", *NUMBERED} <= set(LISTS)


@pytest.mark.parametrize("path", LISTS)
def test_made_up_cursors_are_refused(service, path):
    path = real(service, path)
    if path is None:
        return
    for cursor in ("nonsense", "~", "admin", "admin~00000000", NOBODY, "-1", "1e3", "x" * 200, "99999999999999999999"):
        problem(service.get(f"{path}?cursor={cursor}"), 400, parameter="cursor")
    problem(service.get(f"{path}?cursor="), 400, parameter="cursor")


@pytest.mark.parametrize("path", [p for p in LISTS if "{" not in p and p not in NUMBERED])
def test_pages_one_by_one_are_the_whole(service, path):
    whole = [item["id"] if "id" in item else item["name"] for item in service.json(path + "?limit=1000")["items"]]
    seen, cursor = [], ""
    while cursor is not None:
        page = service.json(f"{path}?limit=1" + (cursor and f"&cursor={cursor}"))
        seen += [item["id"] if "id" in item else item["name"] for item in page["items"]]
        cursor = page["next"]
    assert seen == whole


def test_a_cursor_belongs_to_its_list(service):
    cursor = service.json("/api/v1/accounts?limit=1")["next"]
    problem(service.get(f"/api/v1/workloads?cursor={cursor}"), 400, parameter="cursor")
    assert ask(service, "GET", f"/api/v1/accounts/?cursor={cursor}").status == 200


def test_a_cursor_survives_its_item(service):
    body = {"name": "aa", "password": PASSWORD, "role": "ReadOnly"}
    made = service.post("/api/v1/accounts", body).json()
    page = service.json("/api/v1/accounts?limit=2")
    assert page["items"][1]["id"] == made["id"]
    service.delete(made["href"])
    names = [a["name"] for a in service.json(f"/api/v1/accounts?cursor={page['next']}")["items"]]
    assert names == ["admin", "b", "n" * 64]


@pytest.mark.parametrize("path", NUMBERED)
def test_numbers_beyond_the_last_are_refused(service, path):
    first = service.json(path + "?limit=1")["items"][0]["id"]
    assert service.get(f"{path}?cursor={first}").status_code == 200
    problem(service.get(f"{path}?cursor=1000000"), 400, parameter="cursor")


def test_samples_begin_within_the_span(service):
    path = service.json("/api/v1/series")["items"][0]["href"] + "/samples"
    problem(service.get(f"{path}?cursor=1"), 400, parameter="cursor")
    problem(service.get(f"{path}?cursor=99999999999999"), 400, parameter="cursor")


@pytest.mark.parametrize(
    "query", [f"drives?host={NOBODY}", "drives?host=rack", f"series?host={NOBODY}", "benchmarks?drive=nvme0"]
)
def test_filters_by_what_is_not_there_are_refused(service, query):
    parameter = query.split("?")[1].split("=")[0]
    problem(service.get(f"/api/v1/{query}"), 400, parameter=parameter)


def test_filters_by_what_is_there(service):
    host = service.json("/api/v1/hosts/local")["id"]
    drive = service.drives()[0]["id"]
    for given in ("local", host):
        assert len(service.json(f"/api/v1/drives?host={given}")["items"]) == 3
        assert service.json(f"/api/v1/series?host={given}")["items"]
    assert service.json(f"/api/v1/benchmarks?drive={drive}")["items"] == []
    other = service.post("/api/v1/hosts", {"name": "other"}).json()["id"]
    assert service.json(f"/api/v1/drives?host={other}")["items"] == []
    assert service.json(f"/api/v1/series?host={other}")["items"] == []
