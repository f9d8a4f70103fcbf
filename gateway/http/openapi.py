"""The OpenAPI document of a listener, and what routes say of themselves in it."""

from collections.abc import Mapping
from functools import partial
from importlib.metadata import version as version_of
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

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

Case = tuple[str, str, str]
"""A problem's code, what it is, and an example of its detail."""


def read_version() -> str:
    """Return the version of the installed project."""
    return version_of(PRODUCT)


def described(
    model: Any,
    description: str,
    *further: int,
    extra: Mapping[str, Any] = {},
    missing: Case | None = None,
    status: int = 200,
) -> dict[str, Any]:
    """Return what a route says of itself, as arguments of its decorator.

    ``further`` are the errors of its own, ``missing`` describes its 404. What any route
    of its kind may end in is added when the document is built.
    """
    responses = {number: problem_response(number) for number in further}
    if missing is not None:
        responses[404] = problem_response(404, missing)
    responses[status] = {"model": model, "description": description}
    return {"status_code": status, "responses": responses, "openapi_extra": {**extra}}


def conditional(
    model: Any, description: str, *further: int, extra: Mapping[str, Any] = TOKENS
) -> dict[str, Any]:
    """Return the same of a route that answers 304 to whoever has its answer."""
    extra = {"parameters": [IF_NONE_MATCH], **extra}
    arguments = described(model, description, *further, extra=extra)
    arguments["responses"][200]["headers"] = ETAG
    arguments["responses"][304] = {
        "description": "Nothing has changed since the answer with this ETag",
        "headers": ETAG,
    }
    return arguments


operators_only = partial(described, extra=OPERATORS)
"""``described`` of a route that is for operators alone."""


def problem_response(status: int, case: Case | None = None) -> dict[str, Any]:
    """Describe an error, the usual one of its status unless another is given."""
    code, description, detail = case or PROBLEMS[status]
    example = problems.describe(status, code, detail)
    content = {"schema": {"$ref": PROBLEM}, "example": example}
    return {"description": description, "content": {problems.MEDIA_TYPE: content}}


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
            responses = operation["responses"]
            # A parameter that breaks a rule is answered with 400 here.
            responses.pop("422", None)
            # A parameter that there is not, a fault, too much for slow readers.
            usual = [400, 500, 503]
            usual += [401] if "security" in operation else []
            if for_operators:
                # A page of another origin, or another name than loopback's.
                usual.append(403)
            elif not path.startswith(FREE):
                usual.append(429)
            for status in usual:
                responses.setdefault(str(status), problem_response(status))
            operation["responses"] = dict(sorted(responses.items()))
            for response in responses.values():
                content = response.get("content", {}).get("application/json")
                if content is not None:
                    content["example"] = compose_example(content["schema"], schemas)
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas["ProblemDetails"] = ProblemDetails.model_json_schema(mode="serialization")
    bearer = {"type": "http", "scheme": "bearer"}
    why = "required if the gateway has a key for tokens"
    schemes = components.setdefault("securitySchemes", {})
    schemes["token"] = {**bearer, "bearerFormat": "JWT", "description": why}
    if for_operators:
        why = "the operators' token, required if there is one"
        schemes["operator"] = {**bearer, "description": why}
    return document


def compose_example(schema: dict[str, Any], schemas: Mapping[str, Any]) -> Any:
    """Put an example together of those that the models' fields have.

    Figures that need none are nought. What may be left out is, unless it is a list.
    """
    match schema:
        case {"$ref": name}:
            return compose_example(schemas[name.rpartition("/")[2]], schemas)
        case {"examples": [example, *_]} | {"const": example} | {"enum": [example, *_]}:
            return example
        case {"anyOf": [first, *_]}:
            return compose_example(first, schemas)
        case {"type": "object"}:
            return {
                name: compose_example(part, schemas)
                for name, part in schema.get("properties", {}).items()
                if name in schema.get("required", []) or part.get("type") == "array"
            }
        case {"type": "array"}:
            return [compose_example(schema["items"], schemas)]
    return {"boolean": True, "integer": 0}[schema["type"]]
