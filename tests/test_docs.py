"""The documents say what the code does: nothing that can be set or seen is missing."""

import ast
import json
import re
import tokenize
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Literal, get_args, get_origin

import pytest
from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic.fields import FieldInfo

from cli.command_line import app
from cli.commands.unknown_variables import KINDS
from gateway.protocol.messages import parse
from gateway.stream.counters import Counters
from ingest.feed.pacer import FeedReport
from ingest.redis_keys import Keys, OtherKeys
from ingest.settings import variables_of
from ingest.trade import REASONS
from tests.documents import OPERATIONS
from tests.package_graph import FLOORS, PACKAGES, name_of, sources, tree_of
from tests.paths import ROOT
from tests.tidy import check
from tickthrottle_client.tick_v1 import ALL, CloseCode
from tickthrottle_client.topic_writer import TOO_LARGE

PROTOCOL = (ROOT / "docs" / "protocol.md").read_text("utf-8")


def variables() -> Iterator[tuple[str, str]]:
    """Yield every setting's variable and default."""
    for kind in KINDS:
        for name, variable in variables_of(kind).items():
            field = kind.model_fields[name]
            # A list is written without anything around it, an empty one as nothing.
            is_list = isinstance(field.default, frozenset)
            default = ",".join(field.default) if is_list else str(field.default)
            yield variable, default


def test_a_setting_is_in_the_table_with_its_default() -> None:
    """An operator finds every setting, and what it is when left alone."""
    check(line for setting in sorted(set(variables())) for line in untold(*setting))


def untold(variable: str, default: str) -> Iterator[str]:
    """Yield what the table of settings gets wrong about one of them."""
    rows = [s for s in OPERATIONS.splitlines() if s.startswith(f"| `{variable}` |")]
    if len(rows) != 1:
        yield f"{variable}: has {len(rows)} rows"
        return
    cell = rows[0].split("|")[2].strip().strip("`").replace(",", "")
    is_told = cell == re.sub(r"\.0$|,", "", default)
    if default not in ("None", "PydanticUndefined") and not is_told:
        yield f"{variable}: is {default}, documented as {cell}"


def test_settings_are_frozen_and_take_nothing_unknown() -> None:
    """Settings are read once and cannot be changed afterwards."""
    check(
        kind.__name__
        for kind in KINDS
        if not kind.model_config["frozen"] or kind.model_config["extra"] != "forbid"
    )


ANY_TEXT = {
    "redis_url": "a validator builds the client that connects to it",
    "host": "the operating system says what is no address of this machine",
    "metrics_host": "as host",
    "intake_host": "as host",
    "operators_host": "as host",
    "token_audience": "whatever the issuer of tokens writes",
    "token_issuer": "as token_audience",
    "allowed_origins": "a validator checks each",
    "other_gateways": "as allowed_origins",
    "forwarded_allow_ips": "as allowed_origins",
}
"""Settings that are any text, and why they have no rule of their own."""
BOUNDS = (Ge, Gt, Le, Lt, MinLen)


def constraints_of(kind: object) -> tuple[set[object], list[object]]:
    """Return a setting's types, and what else its annotation says of their values."""
    if get_origin(kind) is Literal:
        return set(), []
    if get_origin(kind) is Annotated:
        inner, *own = get_args(kind)
        types, further = constraints_of(inner)
        return types, further + own
    types, further = set(), []
    for inner in get_args(kind):
        more_types, more = constraints_of(inner)
        types, further = types | more_types, further + more
    return (types, further) if get_args(kind) else ({kind}, [])


def test_a_setting_has_bounds_or_a_closed_set() -> None:
    """A number has a least or a greatest value, a text a form, or a reason."""
    check(
        f"{kind.__name__}: {name}"
        for kind in KINDS
        for name, field in kind.model_fields.items()
        if not is_bounded(name, field)
    )


def is_bounded(name: str, field: FieldInfo) -> bool:
    """Tell whether a setting has the rule that its type needs."""
    types, further = constraints_of(field.annotation)
    rules = [*further, *field.metadata]
    for rule in [rule for rule in rules if isinstance(rule, FieldInfo)]:
        rules += rule.metadata
    has_bound = any(isinstance(rule, BOUNDS) for rule in rules)
    has_form = has_bound or any(getattr(rule, "pattern", None) for rule in rules)
    if types & {int, float}:
        return has_bound
    return str not in types or has_form != (name in ANY_TEXT)


def test_a_reason_for_refusal_is_explained() -> None:
    """Whoever finds a dead letter finds the rule it broke."""
    check(reason for reason in REASONS if f"`{reason}`" not in OPERATIONS)


def test_a_counter_of_the_gateway_is_explained() -> None:
    """A number on a dashboard has a meaning."""
    names = [field.name for field in fields(Counters)]
    check(name for name in names if f"| `{name}` |" not in OPERATIONS)


def test_a_counter_of_a_feed_is_explained() -> None:
    """The last line of a feed can be understood."""
    names = ("acknowledged", "refused", "retried", "in_doubt", "dropped_at_cap")
    assert {field.name for field in fields(FeedReport)} >= {*names}
    check(name for name in names if f"| `{name}` |" not in OPERATIONS)
    assert f"`{TOO_LARGE}`" in OPERATIONS


def test_every_key_and_channel_is_explained() -> None:
    """Whoever looks into Redis knows what is there."""
    keys = Keys("tt")
    per_job = (keys.lease, keys.ledger, keys.batches, keys.stages)
    of_job = [key("<job>") for key in per_job]
    for key in (keys.meta, keys.last, keys.windows, keys.updates, *of_job):
        assert f"| `{key}` |" in OPERATIONS
    assert f"| `{keys.dead('<job>')}:<p>` |" in OPERATIONS
    assert f"| `{OtherKeys('tt').archives}` |" in OPERATIONS


def log_lines() -> Iterator[str]:
    """Yield what gateway and throttle log, as far as it is written out."""
    for package in ("archive", "gateway", "throttle"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(tree_of(path)):
                match node:
                    case ast.Call(
                        ast.Attribute(
                            ast.Name("log"), "info" | "warning" | "error" | "exception"
                        ),
                        [ast.Constant(str(event)), *_],
                    ):
                        yield event


def test_a_log_line_is_explained() -> None:
    """Whoever reads a log finds what happened and what it means."""
    events = sorted(set(log_lines()))
    assert events
    check(e for e in events if f"`{e.replace('`', '')}`" not in OPERATIONS)


def test_every_command_is_in_the_readme() -> None:
    """A stranger learns of every part."""
    readme = (ROOT / "README.md").read_text("utf-8")
    for command in app.registered_commands:
        assert command.callback is not None
        assert f"`tickthrottle {command.callback.__name__}`" in readme


def test_a_close_code_is_in_the_table() -> None:
    """Whoever writes a client finds what to do."""
    rows = [row for row in PROTOCOL.splitlines() if row.startswith("| ")]
    cells = " ".join(row.split("|")[1] for row in rows)
    check(str(code.value) for code in CloseCode if str(code.value) not in cells)


def test_every_example_of_a_client_message_is_understood() -> None:
    """What the document says a client may send, the gateway takes."""
    examples = re.findall(r'^\{"op".*\}$', PROTOCOL, re.MULTILINE)
    assert len(examples) >= 5
    for example in examples:
        parse(example)
    assert ALL in PROTOCOL


def test_every_example_of_a_server_message_is_json() -> None:
    """Examples can be copied."""
    examples = re.findall(r'^\{"type".*\}$', PROTOCOL, re.MULTILINE)
    assert {json.loads(example)["type"] for example in examples} >= {
        "welcome",
        "ack",
        "snapshot",
        "update",
        "heartbeat",
        "error",
    }


DOCUMENTS = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "bench/*.md", "clients/*/*.md")
    for path in ROOT.glob(pattern)
)
MOST_BYTES_OF_A_PAGE = 32_768


def prose(path: Path) -> str:
    """Return a document without its blocks of code."""
    return re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.M | re.S)


def links(path: Path) -> Iterator[tuple[Path, str]]:
    """Yield the file and the anchor of every link within the project."""
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
        if "://" not in link:
            target, _, anchor = link.partition("#")
            yield (path.parent / target).resolve() if target else path, anchor


def anchors(path: Path) -> set[str]:
    """Return the anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", prose(path), re.M)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in headings
    }


def test_links_between_the_documents_lead_somewhere() -> None:
    """No document points to a file or a section that is not there."""
    check(
        f"{name_of(path)}: {target.name}#{anchor}"
        for path in DOCUMENTS
        for target, anchor in links(path)
        if not target.exists() or (anchor and anchor not in anchors(target))
    )


def test_a_file_that_a_document_names_exists() -> None:
    """A reader can open it; the history alone names what is gone."""
    tops = "|".join((*PACKAGES, "bench", "clients", "docs", "packaging", "tests"))
    name_in_text = re.compile(rf"`((?:{tops})/[\w./-]+)`")
    check(
        f"{name_of(path)}: {name}"
        for path in DOCUMENTS
        if path.stem != "CHANGELOG"
        for name in name_in_text.findall(path.read_text("utf-8"))
        if not (ROOT / name).exists()
    )


CODE = [*sources(), *sources("bench")]
FILE_NAME = re.compile(r"[\w./-]*\w\.(?:py|js|mjs|lua)\b(?![\w(])")


def words_of(path: Path) -> Iterator[str]:
    """Yield the comments and docstrings of a source file."""
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.COMMENT or token.string.startswith('"""'):
                yield token.string


def file_names() -> set[str]:
    """Return the path of every file of the project, and each of its ends."""
    tops = (*PACKAGES, "bench", "clients", "docs", "packaging", "tests")
    paths = [path for top in tops for path in (ROOT / top).rglob("*.*")]
    parts = [path.relative_to(ROOT).parts for path in paths]
    return {"/".join(p[i:]) for p in parts for i in range(len(p))}


def test_a_file_that_the_code_names_exists() -> None:
    """Who follows a comment finds what it speaks of."""
    names = file_names()
    check(
        f"{name_of(path)}: {name}"
        for path in CODE
        for words in words_of(path)
        for name in FILE_NAME.findall(words)
        if name not in names
    )


def test_design_names_the_rooms_of_a_package_in_their_order() -> None:
    """A newcomer sees the floor before opening it."""
    design = (ROOT / "docs" / "design.md").read_text("utf-8")
    for package, floor in FLOORS.items():
        [row] = re.findall(rf"^- `{package}/`: (.*)$", design, re.M)
        rooms = [re.match(r"`(\w+)`", part) for part in row.split(" · ")]
        assert tuple(room[1] for room in rooms if room) == floor


def test_a_page_is_short_enough_to_read_and_can_be_found() -> None:
    """A page has one subject, and README leads to it."""
    reached = {target for target, _ in links(ROOT / "README.md")}
    check(
        name_of(path)
        for path in ROOT.glob("docs/**/*.md")
        if path.stat().st_size > MOST_BYTES_OF_A_PAGE or path not in reached
    )


@pytest.mark.redis
def test_the_examples_of_the_test_drivers_hold() -> None:
    """A newcomer can copy a scenario and change it."""
    text = (ROOT / "docs" / "testing.md").read_text("utf-8")
    examples = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(examples) == 2
    for example in examples:
        exec(compile(example, "docs/testing.md", "exec"), {})
