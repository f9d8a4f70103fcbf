"""tick.d.ts says of messages what the AsyncAPI document says, field by field."""

import re
from collections.abc import Mapping
from typing import Any

from tests.gateway.asyncapi import document
from tests.paths import ROOT

TYPES = (ROOT / "clients" / "js" / "tick.d.ts").read_text("utf-8")
MESSAGES = {
    **{
        name: name.capitalize()
        for name in (
            *("welcome", "ack", "snapshot", "update", "bars", "trades", "members"),
            *("heartbeat", "status", "statuses", "notice", "pong"),
        )
    },
    "error": "ErrorMessage",
}
"""Messages of the server, and their types."""

SCHEMAS = {
    **{"bar": "Bar", "day": "Day", "epoch": "Epoch", "entry": "Entry"},
    "trading_status": "InstrumentStatus",
}
LISTED = {"items": "Item", "groups": "Group"}
HANDED_OUT = {**LISTED, "data": "Item"}
"""Of rows by position the client makes items."""
DECIMAL_IN = {"Item", "Day", "Group", "Bar", "Entry", "InstrumentStatus"}
"""Types whose decimals the client gives as text."""


def without_comments(text: str) -> str:
    """Return TypeScript without its comments, on few lines."""
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def fields_of(name: str) -> dict[str, str]:
    """Return an interface: name, with "?" where it may be left out, to type."""
    [(base, body)] = re.findall(
        rf"export interface {name}(?: extends (\w+))? \{{(.*?)^\}}",
        without_comments(TYPES),
        re.DOTALL | re.MULTILINE,
    )
    found = re.findall(r"^  (\w+\??):\s*(.*?);$", body, re.DOTALL | re.MULTILINE)
    inherited = fields_of(base) if base else {}
    return {**inherited, **{field: in_order(kind) for field, kind in found}}


def in_order(kind: str) -> str:
    """Return a type as this file writes it: alternatives sorted, names resolved."""
    kind = re.sub(r"\s+", " ", kind).strip("| ")
    if re.fullmatch(r"\w+", kind):
        alias = re.search(rf"export type {kind} =\s*(.*?);", TYPES, re.DOTALL)
        return kind if alias is None else in_order(alias[1])
    if "{" in kind:
        return kind
    return " | ".join(sorted(kind.split(" | ")))


def expected(schema: Mapping[str, Any], owner: str) -> str:
    """Return the type of what a schema describes, within a type of that name."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name in SCHEMAS:
            return in_order(SCHEMAS[name])
        if name in HANDED_OUT:
            return f"{HANDED_OUT[name]}[]"
        return expected(document()["components"]["schemas"][name], owner)
    if "const" in schema:
        return literal(schema["const"])
    if "enum" in schema:
        return in_order(" | ".join(map(literal, schema["enum"])))
    if "oneOf" in schema:
        kinds = [expected(one, owner) for one in schema["oneOf"]]
        return in_order(" | ".join(kinds))
    if isinstance(schema["type"], list):
        kinds = [expected({**schema, "type": one}, owner) for one in schema["type"]]
        return in_order(" | ".join(kinds))
    match schema["type"]:
        case "number":
            return "string" if owner in DECIMAL_IN else "number"
        case "array" if "properties" in schema["items"]:
            return "Rejected[]"
        case "array":
            return f"{expected(schema['items'], owner)}[]"
        case "object" if "additionalProperties" in schema:
            return f"Record<string, {expected(schema['additionalProperties'], owner)}>"
        case "object":
            fields = expected_fields(schema, owner).items()
            return "{ " + "; ".join(f"{name}: {kind}" for name, kind in fields) + " }"
        case kind:
            return {"integer": "number", "null": "null"}.get(kind, kind)


def literal(value: object) -> str:
    """Return a constant of a schema as a type."""
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


def expected_fields(schema: Mapping[str, Any], owner: str) -> dict[str, str]:
    """Return the fields of an object that a schema describes."""
    return {
        name if name in schema["required"] else f"{name}?": expected(field, owner)
        for name, field in schema["properties"].items()
    }


def described() -> dict[str, Mapping[str, Any]]:
    """Return the schema of each type."""
    components = document()["components"]
    schemas = components["schemas"]
    ack = components["messages"]["ack"]["payload"]["properties"]
    return {
        **{of: components["messages"][m]["payload"] for m, of in MESSAGES.items()},
        **{of: schemas[name]["items"] for name, of in LISTED.items()},
        "Bar": schemas["bar"],
        "Day": schemas["day"],
        "Entry": schemas["entry"],
        "InstrumentStatus": schemas["trading_status"],
        "Rejected": ack["rejected"]["items"],
    }


def test_a_type_has_the_fields_of_the_document() -> None:
    """Each under its name, of its type, and left out only where it may be."""
    for name in described():
        assert fields_of(name) == expected_fields(described()[name], name)


def test_every_message_of_the_server_has_a_type() -> None:
    """A message that is added to the document is missed here."""
    [union] = re.findall(r"export type Message =(.*?);", TYPES, re.DOTALL)
    assert {name.strip() for name in union.split("|") if name.strip()} == set(
        MESSAGES.values()
    )
    sent = {
        name
        for name, message in document()["components"]["messages"].items()
        if "type" in message["payload"]["properties"]
    }
    assert sent == MESSAGES.keys()
