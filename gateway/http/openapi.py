"""The OpenAPI document of a listener, and what routes say of themselves in it."""

from collections.abc import Mapping
from importlib.metadata import version as version_of
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from gateway.http import problems
from gateway.http.request_budget import FREE
from gateway.http.schemas import ProblemDetails

PATH = "/v1/openapi.json"

PRODUCT = "tickthrottle"

SUMMARY = "Latest trades and two-second windows of thousands of instruments"

PROBLEM = "#/components/schemas/ProblemDetails"

PROBLEMS: Mapping[int, tuple[str, str, str]] = {
    400: ("bad_request", "A parameter breaks a rule", "limit: must be from 1"),
    401: ("not_allowed", "No token, or a bad one", "the token has expired"),
    403: (
        "not_allowed",
        "Not in the token, or a page of another host",
        "KR7000660001: not in your token",
    ),
    404: (
        "unknown_key",
        "There is no such resource, instrument or window",
        "KR7000660001 has not traded yet",
    ),
    429: (
        "rate_limited",
        "Too many requests of one address",
        "more than 100 requests a second of an address",
    ),
    500: (
        "internal",
        "A fault of the gateway",
        "not carried out; the incident 7f3a9102 is in the log",
    ),
    503: (
        "unavailable",
        "It cannot be answered at the moment",
        "Redis cannot be read at the moment",
    ),
}

IF_NONE_MATCH = {
    "name": "If-None-Match",
    "in": "header",
    "required": False,
    "description": "the ETag of the last answer; 304 if nothing has changed since",
    "schema": {"type": "string"},
    "example": '"6b3f0c7a52e8d91f4c0b7a3e"',
}

ETAG = {
    "ETag": {
        "description": "names this answer; send it back as If-None-Match",
        "required": True,
        "schema": {"type": "string", "pattern": '^"[0-9a-f]+"$'},
    }
}

TOKENS: dict[str, Any] = {"security": [{"token": []}, {}]}
"""A token, where the gateway asks for one."""

OPERATORS: dict[str, Any] = {"security": [{"operator": []}, {}]}
"""The operators' token, where there is one."""


def read_version() -> str:
    """Return the version of the installed project."""
    return version_of(PRODUCT)


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
    responses: dict[int | str, dict[str, Any]] = {200: good}
    if is_conditional:
        good["headers"] = ETAG
        responses[304] = {
            "description": "Nothing has changed since the answer with this ETag",
            "headers": ETAG,
        }
    return responses | {status: problem_response(status) for status in (*further, 500)}


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


def describe(app: FastAPI, *, for_operators: bool) -> None:
    """Have ``app`` build its document once, of the routes it has by then."""

    def build() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _build(app, for_operators=for_operators)
        return app.openapi_schema

    app.openapi = build  # type: ignore[method-assign]


def _build(app: FastAPI, *, for_operators: bool) -> dict[str, Any]:
    document = get_openapi(
        title=app.title, version=read_version(), summary=SUMMARY, routes=app.routes
    )
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for path, operations in document["paths"].items():
        for operation in operations.values():
            is_limited = not (for_operators or path.startswith(FREE))
            _complete(operation, for_operators=for_operators, is_limited=is_limited)
            for response in operation["responses"].values():
                content = response.get("content", {}).get("application/json")
                if content is not None:
                    content["example"] = compose_example(content["schema"], schemas)
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas["ProblemDetails"] = ProblemDetails.model_json_schema(mode="serialization")
    schemes = components.setdefault("securitySchemes", {})
    schemes["token"] = {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "required if the gateway has a key for tokens",
    }
    if for_operators:
        schemes["operator"] = {
            "type": "http",
            "scheme": "bearer",
            "description": "the operators' token, required if there is one",
        }
    return document


def _complete(
    operation: dict[str, Any], *, for_operators: bool, is_limited: bool
) -> None:
    """Add the errors that any route of its kind may end in."""
    responses = operation["responses"]
    # A parameter that breaks a rule is answered with 400 here.
    if responses.pop("422", None) is not None:
        responses.setdefault("400", problem_response(400))
    # A parameter that there is not.
    responses.setdefault("400", problem_response(400))
    if is_limited:
        responses.setdefault("429", problem_response(429))
    # Too much is on its way to slow readers.
    responses.setdefault("503", problem_response(503))
    responses.setdefault("500", problem_response(500))
    if for_operators:
        # A page of another origin, or another name than loopback's.
        responses.setdefault("403", problem_response(403))
    operation["responses"] = dict(sorted(responses.items()))


def compose_example(schema: dict[str, Any], schemas: Mapping[str, Any]) -> Any:
    """Put an example together of those that the models' fields have.

    Figures that need none are nought. What may be left out is, unless it is a list.
    """
    if "$ref" in schema:
        return compose_example(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    if "examples" in schema:
        return schema["examples"][0]
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return compose_example(schema["anyOf"][0], schemas)
    match schema["type"]:
        case "object":
            return {
                name: compose_example(part, schemas)
                for name, part in schema.get("properties", {}).items()
                if name in schema.get("required", []) or part.get("type") == "array"
            }
        case "array":
            return [compose_example(schema["items"], schemas)]
        case kind:
            return {"boolean": True, "integer": 0}[kind]
