"""The routes of the program are the operations of openapi.yaml, one for one."""

import contract
import jsonschema
import pytest
from service import routes, tried


def test_routes_are_the_described_operations():
    described = {op: (m, p) for op, (m, p, _) in contract.OPERATIONS.items()}
    assert {op: (method, path) for method, path, op, _ in routes()} == described


@pytest.mark.parametrize("operation", sorted(contract.OPERATIONS))
def test_roles_are_described(operation):
    role = next(role for _, _, op, role in routes() if op == operation)
    op = contract.OPERATIONS[operation][2]
    if op.get("security") == []:
        assert role == "public"
    else:
        assert role == op["x-role"]


@pytest.mark.parametrize("operation", sorted(contract.OPERATIONS))
def test_dry_runs_are_described(operation):
    method, _, op = contract.OPERATIONS[operation]
    refs = [p.get("$ref", "").split("/")[-1] for p in op.get("parameters", [])]
    assert ("DryRun" in refs) == (operation in tried())
    assert method != "GET" or operation not in tried()


def test_every_change_can_be_tried_or_says_why_not():
    for operation, (method, path, op) in contract.OPERATIONS.items():
        if method != "GET" and path.startswith("/api/v1/"):
            assert (operation in tried()) != bool(op.get("x-no-dry-run")), operation


def test_examples_fit_their_schemas():
    for _, path, op in contract.OPERATIONS.values():
        for content in op.get("requestBody", {}).get("content", {}).values():
            errors = list(contract.validator(content["schema"]).iter_errors(content["example"]))
            assert not errors, f"{path}: {errors[0].message}"


def test_schemas_are_schemas():
    for name, schema in contract.DOCUMENT["components"]["schemas"].items():
        jsonschema.Draft202012Validator.check_schema(schema)
        assert name[0].isupper()


def test_description_is_served(simulated):
    served = simulated.json("/openapi.json")
    assert served["paths"].keys() == contract.DOCUMENT["paths"].keys()
    assert simulated.get("/openapi.yaml").text.startswith("openapi: 3.1.0")
