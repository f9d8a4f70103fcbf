"""The OpenAPI document of a listener, and what routes say of themselves in it."""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from gateway import ops_examples, problems
from gateway.schemas import EXAMPLES, ProblemDetails

PATH = "/v1/openapi.json"

SUMMARY = "Latest trades and two-second windows of thousands of issues"

PROBLEM = "#/components/schemas/ProblemDetails"

PROBLEMS: Mapping[int, tuple[str, str, str]] = {
    400: ("bad_request", "A parameter breaks a rule", "limit: must be from 1"),
    401: ("not_allowed", "No token, or none that is good", "the token has expired"),
    403: (
        "not_allowed",
        "Not in the token, or a page of another host",
        "KR7000660001: not in your token",
    ),
    404: (
        "unknown_key",
        "There is no such thing",
        "KR7000660001 has not traded yet",
    ),
    500: (
        "internal",
        "A fault of the gateway",
        "not carried out; the incident 7f3a9102 is in the log",
    ),
    503: (
        "unavailable",
        "Not at the moment",
        "Redis cannot be read at the moment",
    ),
}

IF_NONE_MATCH = {
    "name": "If-None-Match",
    "in": "header",
    "required": False,
    "description": "the ETag of the answer that is there already; 304 if it is the one",
    "schema": {"type": "string"},
    "example": '"6b3f0c7a52e8d91f4c0b7a3e"',
}

ETAG = {
    "ETag": {
        "description": "names the answer; for If-None-Match",
        "required": True,
        "schema": {"type": "string", "pattern": '^"[0-9a-f]+"$'},
    }
}

TOKENS: dict[str, Any] = {"security": [{"token": []}, {}]}
"""A token, where the gateway asks for one."""

OPERATORS: dict[str, Any] = {"security": [{"operator": []}, {}]}
"""The operators' token, where there is one."""


def answers(
    model: Any,
    *further: int,
    description: str,
    is_conditional: bool = False,
) -> dict[int | str, dict[str, Any]]:
    """Return a route's ``responses``: what it gives, and the errors it may end in.

    Every route may end in 500; that one is not named.
    """
    good: dict[str, Any] = {"model": model, "description": description}
    if model in EXAMPLES:
        good["content"] = {"application/json": {"example": EXAMPLES[model]}}
    found: dict[int | str, dict[str, Any]] = {200: good}
    if is_conditional:
        good["headers"] = ETAG
        found[304] = {"description": "The client has it already", "headers": ETAG}
    return found | {status: problem_response(status) for status in (*further, 500)}


def problem_response(
    status: int, case: tuple[str, str, str] | None = None
) -> dict[str, Any]:
    """Describe an error, the usual one of its status unless another is given."""
    code, description, detail = PROBLEMS[status] if case is None else case
    example = problems.describe(status, code, detail)
    content = {"schema": {"$ref": PROBLEM}, "example": example}
    return {"description": description, "content": {problems.MEDIA_TYPE: content}}


def conditional(*, needs_token: bool = True) -> dict[str, Any]:
    """Return what else is to be said of a route that answers 304."""
    extra: dict[str, Any] = {"parameters": [IF_NONE_MATCH]}
    return extra | TOKENS if needs_token else extra


def name_operation(route: APIRoute) -> str:
    """Return a route's operation id: the name of its function."""
    return route.name


def describe(app: FastAPI, version: str, *, for_operators: bool) -> None:
    """Have ``app`` build its document once, of the routes it has by then."""

    def build() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _build(app, version, for_operators=for_operators)
        return app.openapi_schema

    app.openapi = build  # type: ignore[method-assign]


def _build(app: FastAPI, version: str, *, for_operators: bool) -> dict[str, Any]:
    document = get_openapi(
        title=app.title, version=version, summary=SUMMARY, routes=app.routes
    )
    for operations in document["paths"].values():
        for operation in operations.values():
            _complete(operation, for_operators=for_operators)
            example = ops_examples.EXAMPLES.get(operation["operationId"])
            if example is not None:
                # Set here: FastAPI leaves out of an example what is null.
                content = operation["responses"]["200"]["content"]
                content["application/json"]["example"] = example
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas["ProblemDetails"] = ProblemDetails.model_json_schema(mode="serialization")
    schemes = components.setdefault("securitySchemes", {})
    schemes["token"] = {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "wanted where the gateway has a key for tokens",
    }
    if for_operators:
        schemes["operator"] = {
            "type": "http",
            "scheme": "bearer",
            "description": "the operators' token, wanted where there is one",
        }
    return document


def _complete(operation: dict[str, Any], *, for_operators: bool) -> None:
    """Add the errors that any route of its kind may end in."""
    responses = operation["responses"]
    # A parameter that breaks a rule is answered with 400 here.
    if responses.pop("422", None) is not None:
        responses.setdefault("400", problem_response(400))
    responses.setdefault("500", problem_response(500))
    if for_operators:
        # A page of another origin, or another name than loopback's.
        responses.setdefault("403", problem_response(403))
    operation["responses"] = dict(sorted(responses.items()))
