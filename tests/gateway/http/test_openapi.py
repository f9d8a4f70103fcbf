"""The OpenAPI document: complete, and true of real answers."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.gateway.samples import FIRST_WINDOW, NAVER, SAMSUNG
from tests.gateway.servers import Gateway

pytestmark = pytest.mark.redis

Operation = tuple[str, str, dict[str, Any]]


@pytest.fixture(params=["public", "operators"])
def port(request: pytest.FixtureRequest, listed: Gateway) -> Gateway:
    """Either port."""
    return listed if request.param == "public" else listed.operators


def read_document(port: Gateway) -> dict[str, Any]:
    """Return the document of a port."""
    status, body, headers = port.fetch("/v1/openapi.json")
    assert (status, headers["content-type"]) == (200, "application/json")
    document: dict[str, Any] = json.loads(body)
    return document


def operations(document: dict[str, Any]) -> Iterator[Operation]:
    """Yield path, method and operation of everything that may be asked for."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def validator(document: dict[str, Any], schema: dict[str, Any]) -> Draft202012Validator:
    """Return what checks values against a schema of the document."""
    return Draft202012Validator({**schema, "components": document["components"]})


def test_every_operation_is_described(port: Gateway) -> None:
    """With a name of its own, its answers, its errors, and what it is for."""
    document = read_document(port)
    found = list(operations(document))
    names = [operation["operationId"] for _, _, operation in found]
    assert len(set(names)) == len(names)
    for path, method, operation in found:
        where = f"{method} {path}"
        assert operation["description"], where
        assert operation["tags"], where
        assert "500" in operation["responses"], where
        assert "422" not in operation["responses"], where
        for status, response in operation["responses"].items():
            content = response.get("content", {})
            is_empty = status in ("204", "304")
            assert is_empty or all(c.get("schema") for c in content.values()), where
            assert is_empty == (not content), (where, status)
            is_error = int(status) >= 400 and (path, status) != ("/health/ready", "503")
            assert ("application/problem+json" in content) == is_error, (where, status)
        for parameter in operation.get("parameters", []):
            assert parameter["schema"], where


def test_every_example_is_as_its_schema_says(port: Gateway) -> None:
    """Every answer has one, and it can be trusted."""
    document = read_document(port)
    for path, _, operation in operations(document):
        for status, response in operation["responses"].items():
            for kind, content in response.get("content", {}).items():
                assert "example" in content, (path, status)
                if kind != "text/event-stream":
                    check = validator(document, content["schema"])
                    check.validate(content["example"])


def test_operators_routes_are_in_their_own_document_only(listed: Gateway) -> None:
    """The public one does not even name them."""
    public = set(read_document(listed)["paths"])
    all_paths = set(read_document(listed.operators)["paths"])
    assert public < all_paths
    assert "/v1/counters" in all_paths - public
    assert {"/v1/quotes", "/v1/sse", "/health/ready"} <= public


def test_a_real_answer_is_as_the_document_says(port: Gateway) -> None:
    """Its status, its type, its ETag and every field."""
    document = read_document(port)
    for path in [
        "/v1/version",
        "/v1/market-hours",
        "/v1/instruments",
        "/v1/instruments/005930/windows",
        "/v1/instruments/1/windows",
        "/v1/quotes",
        "/v1/quotes?market=KOSPI",
        "/v1/quotes?market=nowhere",
        f"/v1/quotes/{SAMSUNG}",
        f"/v1/quotes/{NAVER}",
        "/v1/quotes/KR7005930004",
        "/v1/windows",
        "/v1/windows?rows=false",
        "/v1/windows?limit=0",
        "/v1/windows/latest",
        f"/v1/windows/{FIRST_WINDOW + 4_000}",
        f"/v1/windows/{FIRST_WINDOW + 4_000}?rows=false",
        "/v1/windows/7",
        f"/v1/quotes/{SAMSUNG}?fields=day",
        "/v1/quotes?fields=name,day",
        "/v1/bars/005930",
        "/v1/bars/005930?interval=1d",
        "/v1/bars/005930?interval=2m",
        "/v1/movers",
        "/v1/days",
        "/v1/trends",
        "/v1/bursts",
        "/v1/moves",
        "/health/live",
        "/health/ready",
    ]:
        status, body, headers = port.fetch(path)
        bare = path.partition("?")[0]
        [operation] = [
            methods["get"]
            for template, methods in document["paths"].items()
            if template == bare or is_of(template, bare, document["paths"])
        ]
        response = operation["responses"][str(status)]
        content = response["content"][headers["content-type"]]
        validator(document, content["schema"]).validate(json.loads(body))
        assert ("etag" in headers) == ("ETag" in response.get("headers", {}))


def is_of(template: str, path: str, paths: dict[str, Any]) -> bool:
    """Say whether a path is what a template stands for, and no other path is it."""
    parts, wanted = template.split("/"), path.split("/")
    return (
        path not in paths
        and len(parts) == len(wanted)
        and all(p == w or p.startswith("{") for p, w in zip(parts, wanted, strict=True))
    )
