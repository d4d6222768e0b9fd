"""openapi.yaml as a judge: every response that a test sees is held against it."""

import os
import re

import jsonschema
import yaml

ROOT = os.path.join(os.path.dirname(__file__), "..", "..")

with open(os.path.join(ROOT, "openapi.yaml"), encoding="utf-8") as f:
    DOCUMENT = yaml.safe_load(f)

METHODS = ("get", "post", "put", "patch", "delete")


def operations():
    """operationId → (METHOD, path, operation)"""
    return {
        op["operationId"]: (method.upper(), path, op)
        for path, item in DOCUMENT["paths"].items()
        for method, op in item.items()
        if method in METHODS
    }


OPERATIONS = operations()
PATTERNS = [
    (method, re.compile(re.sub(r"\{\w+\}", "[^/]+", path) + "$"), op)
    for method, path, op in OPERATIONS.values()
]
SEEN = set()


def find(method, path):
    method = "GET" if method == "HEAD" else method
    for wanted, pattern, op in PATTERNS:
        if wanted == method and pattern.match(path):
            return op
    return None


def resolve(node):
    while "$ref" in node:
        target = DOCUMENT
        for part in node["$ref"].lstrip("#/").split("/"):
            target = target[part]
        node = target
    return node


def validator(schema):
    return jsonschema.Draft202012Validator(
        {**schema, "components": DOCUMENT["components"]},
        format_checker=jsonschema.FormatChecker(),
    )


def check(response):
    """Fails unless the response is one that openapi.yaml allows for its operation."""
    path = re.sub(r"^https?://[^/]+", "", response.request.url).split("?")[0]
    op = find(response.request.method, path)
    if op is None:
        assert response.status_code in (400, 404, 405, 501), f"{path} is not described"
        return
    SEEN.add(op["operationId"])
    if response.status_code == 304 or response.request.method == "HEAD":
        return
    status = str(response.status_code)
    described = op["responses"].get(status)
    if described is None:
        assert response.status_code >= 400, f"{path}: {status} is not described"
        described = op["responses"]["default"]
    described = resolve(described)
    for name, header in described.get("headers", {}).items():
        assert name in response.headers or not resolve(header).get("required"), f"{path}: no {name}"
    content = described.get("content")
    if content is None:
        assert response.content == b"", f"{path}: {status} has a body"
        return
    media = response.headers["Content-Type"].split(";")[0]
    assert media in content, f"{path}: {media} is not described"
    if media.endswith("json"):
        errors = sorted(validator(content[media]["schema"]).iter_errors(response.json()), key=str)
        assert not errors, f"{path}: {errors[0].message} at {list(errors[0].absolute_path)}"
