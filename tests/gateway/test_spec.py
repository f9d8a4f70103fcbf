"""docs/spec/: its pages have what the code and docs/asyncapi.yaml have, no more.

Every frame of a gateway in a test is checked against the latter.
"""

import ast
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import pytest

from gateway.protocol.messages import parse
from tests.doc_pages import text_of
from tests.gateway.asyncapi import DOCUMENT_PATH, check_message, document
from tests.package_graph import sources, tree_of
from tickthrottle_client.tick_v1 import CloseCode, is_final

PAGES = [
    (DOCUMENT_PATH.parent / "spec" / name).read_text("utf-8")
    for name in ("tick-v1.md", "tick-v1-parts.md")
]
SPEC = "\n".join(PAGES)
MESSAGES = {n: m["payload"] for n, m in document()["components"]["messages"].items()}
SENT = {name for name, schema in MESSAGES.items() if "type" in schema["properties"]}
SCHEMAS = document()["components"]["schemas"]
PARTS = {
    "item": SCHEMAS["items"]["items"],
    "group": SCHEMAS["groups"]["items"],
    **{name: SCHEMAS[name] for name in ("day", "bar", "entry", "trading_status")},
}
"""What messages are made of."""
WORDS = {"text": "string", "list": "array", "decimal": "number"}
CODE = [*sources("gateway")]

Fields: TypeAlias = dict[str, tuple[set[str], bool]]
"""The JSON types of each field, and whether it is always there."""


def rows_of(heading: str) -> Iterator[list[str]]:
    """Yield the cells of each row of the tables under a heading that has code.

    The second page has the heading, without a number, if it adds to the first.
    """
    found = rf"^##+ (?:\d+\. )?{heading}$"
    first, *others = re.split(found, SPEC, flags=re.MULTILINE)
    assert first
    assert others, heading
    for part in others:
        text = re.split("^#", part, flags=re.MULTILINE)[0]
        for row in re.findall(r"^\| (`.*) \|$", text, re.MULTILINE):
            yield [cell.strip() for cell in row.split("|")]


def told(rows: list[list[str]]) -> Fields:
    """Return what rows say of fields: names, types, when they are there."""
    return {
        name: ({WORDS.get(word, word) for word in kind.split(" or ")}, not when)
        for names, kind, when, *_ in rows
        for name in re.findall(r"`(\w+)`", names)
    }


def described(schema: Mapping[str, Any], *without: str) -> Fields:
    """Return what the AsyncAPI document says of fields."""
    return {
        name: (types(field), name in schema["required"])
        for name, field in schema["properties"].items()
        if name not in without
    }


def types(field: Mapping[str, Any]) -> set[str]:
    """Return the JSON types of a field."""
    if "$ref" in field:
        return types(SCHEMAS[field["$ref"].rpartition("/")[2]])
    if "oneOf" in field:
        return {kind for one in field["oneOf"] for kind in types(one)}
    kind = field.get("type", "boolean" if field.get("const") is True else "string")
    return {kind} if isinstance(kind, str) else {*kind}


@pytest.mark.parametrize("name", sorted(SENT))
def test_a_message_of_the_server_has_its_fields(name: str) -> None:
    """Each with its type, and with when it is there."""
    assert told([*rows_of(f"`{name}`")]) == described(MESSAGES[name], "type")


@pytest.mark.parametrize("name", sorted(PARTS))
def test_a_part_of_a_message_has_its_fields(name: str) -> None:
    """As messages have."""
    assert told([*rows_of(name)]) == described(PARTS[name])


def test_what_a_client_may_say_has_its_fields() -> None:
    """No message and no field is missing, none is invented."""
    rows = [*rows_of("Messages of a client")]
    assert {row[0].strip("`") for row in rows} == MESSAGES.keys() - SENT
    for name in MESSAGES.keys() - SENT:
        fields = told([row[1:] for row in rows if row[0] == f"`{name}`"])
        assert fields == described(MESSAGES[name], "op", "id")


def test_messages_are_those_of_the_code() -> None:
    """What the gateway builds is specified, and the other way round."""
    code = "".join(path.read_text("utf-8") for path in CODE)
    built = re.findall(r"""message_frame\(\s*"(\w+)"|\{"type":"(\w+)"[,%]""", code)
    assert {name for pair in built for name in pair if name} == SENT


def codes_in(*functions: str) -> set[str]:
    """Return the codes with which the gateway calls functions."""
    return {
        value.value
        for path in CODE
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in functions
        for value in (*node.args, *(k.value for k in node.keywords if k.arg == "code"))
        if isinstance(value, ast.Constant)
        and re.fullmatch("[a-z]+_[a-z]+|internal", str(value.value))
    }


def test_error_codes_are_those_of_the_code() -> None:
    """In errors, and key by key."""
    rows = [row for row in rows_of("Closing and coming back") if len(row) == 3]
    for where, functions, schema in (
        ("`error`", ("BadMessage", "message_frame"), MESSAGES["error"]),
        (
            "`rejected`",
            ("Rejection",),
            MESSAGES["ack"]["properties"]["rejected"]["items"],
        ),
    ):
        specified = {row[0].strip("`") for row in rows if where in row[1]}
        assert specified == codes_in(*functions)
        assert specified == {*schema["properties"]["code"]["enum"]}


def test_close_codes_are_those_of_the_code() -> None:
    """And a client does after each what ours do."""
    rows = re.findall(r"^\| (\d+) \| .* \| (.*) \|$", SPEC, re.MULTILINE)
    assert {int(code) for code, _ in rows} == {*CloseCode}
    for code, action in rows:
        assert (action == "stays away") == is_final(int(code)), code


def test_an_example_is_what_its_message_says() -> None:
    """What can be copied is right."""
    pages = [SPEC, *(text_of(f"docs/{page}.md") for page in ("clients", "rows"))]
    text = "\n".join(pages)
    examples = re.findall(r'^\{"(?:type|op)".*\}$', text, re.MULTILINE)
    # An item stands alone on a page, and goes out in an update.
    update = '{"type":"update","epoch":"e1","offset":1,"window":2000,"data":[%s]}'
    items = re.findall(r'^\{"isin".*"trades":.*\}$', text, re.MULTILINE)
    assert (len(examples) >= 10, len(items)) == (True, 8)
    examples += [update % item for item in items]
    for example in examples:
        check_message(json.loads(example))
        if example.startswith('{"op"'):
            parse(example)


def test_a_clause_has_an_identifier_of_its_own_and_is_part_of_conformance() -> None:
    """They are numbered without holes, and nobody can leave one out."""
    clauses = re.findall(r"^- \*\*([SC])-(\d+)\*\* ", SPEC, re.MULTILINE)
    conformance = "".join(
        page.partition("Conformance\n")[2].partition("The tests of")[0]
        for page in PAGES
    )
    for kind in "SC":
        numbers = [int(number) for k, number in clauses if k == kind]
        assert numbers == [*range(1, len(numbers) + 1)]
        parts = re.findall(rf"{kind}-(\d+)(?: to {kind}-(\d+))?", conformance)
        named = {n for a, b in parts for n in range(int(a), int(b or a) + 1)}
        assert named == {*numbers}
        mentioned = re.findall(rf"\b{kind}-(\d+)", SPEC)
        assert {*map(int, mentioned)} <= named
