"""Pages of reference, from OpenAPI and AsyncAPI. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

Document = Mapping[str, Any]


def rest_page(title: str, document: Document) -> str:
    """Return a page with every operation and every schema of an OpenAPI document."""
    return "\n".join([f"# {title}", "", *_operations(document), *_schemas(document)])


def stream_page(document: Document) -> str:
    """Return a page with every message and close code of an AsyncAPI document."""
    lines = ["# The stream, message by message", "", document["info"]["description"]]
    lines += ["", "[Protocol](protocol.md) explains what to rely on.", ""]
    for name, message in document["components"]["messages"].items():
        payload = _resolved(message["payload"], document)
        summary = message.get("summary") or message.get("description") or ""
        lines += [f"## {name}", "", summary, "", *_fields(payload, document)]
    codes = document["channels"]["stream"]["x-close-codes"]
    lines += ["## Close codes", "", "| code | meaning |", "| --- | --- |"]
    return "\n".join([*lines, *(f"| {c} | {_cell(codes[c])} |" for c in codes), ""])


def _operations(document: Document) -> Iterator[str]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"## {method.upper()} {path}"
            yield from ("", operation.get("summary", ""), "")
            yield from (operation.get("description", ""), "")
            parameters = operation.get("parameters", [])
            if parameters:
                yield from ("| parameter | in | type | meaning |", "| - | - | - | - |")
            for given in parameters:
                one = _resolved(given, document)
                kind = _type_of(one.get("schema", {}))
                meaning = _cell(one.get("description", ""))
                yield f"| `{one['name']}` | {one['in']} | {kind} | {meaning} |"
            yield from ("", "| status | answer | body |", "| - | - | - |")
            for status, given in operation["responses"].items():
                answer = _resolved(given, document)
                kinds = {
                    _type_of(c.get("schema", {}))
                    for c in answer.get("content", {}).values()
                }
                body = ", ".join(sorted(kinds))
                yield f"| {status} | {_cell(answer.get('description', ''))} | {body} |"
            yield ""


def _schemas(document: Document) -> Iterator[str]:
    for name, schema in document.get("components", {}).get("schemas", {}).items():
        yield from (f"## {name}", "", schema.get("description", ""), "")
        yield from _fields(schema, document)


def _fields(schema: Document, document: Document) -> Iterator[str]:
    properties = schema.get("properties", {})
    if not properties:
        return
    needed = schema.get("required", ())
    yield from ("| field | type | always | meaning |", "| - | - | - | - |")
    for name, given in properties.items():
        one = {**_resolved(given, document), **given}
        always = "yes" if name in needed else ""
        meaning = _cell(one.get("description", ""))
        yield f"| `{name}` | {_type_of(given)} | {always} | {meaning} |"
    yield ""


def _type_of(schema: Document) -> str:
    if "$ref" in schema:
        return f"`{schema['$ref'].rpartition('/')[2]}`"
    if "const" in schema:
        return f"`{schema['const']}`"
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return " or ".join(map(_type_of, schema[choice]))
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_type_of(schema.get('items', {}))}"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _resolved(schema: Document, document: Document) -> Document:
    while "$ref" in schema:
        target: Any = document
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        schema = target
    return schema


def _cell(text: str) -> str:
    return " ".join(str(text).split()).replace("|", "\\|")
