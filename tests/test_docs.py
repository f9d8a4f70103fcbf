"""The documents say what the code does: nothing that can be set or seen is missing."""

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
from pydantic_settings import BaseSettings

from deploy.cli import app
from deploy.settings import RunSettings
from gateway.counters import Counters
from gateway.protocol import CloseCode, parse
from gateway.settings import GatewaySettings
from gateway.views import ALL
from ingest.kafka_log import TOO_LARGE
from ingest.pace import FeedReport
from ingest.settings import IngestSettings
from ingest.trade import REASONS
from throttle.settings import ThrottleSettings
from throttle.snapshot import Keys

ROOT = Path(__file__).resolve().parents[1]
OPERATIONS = (ROOT / "docs" / "operations.md").read_text("utf-8")
PROTOCOL = (ROOT / "docs" / "protocol.md").read_text("utf-8")
SETTINGS = (IngestSettings, ThrottleSettings, GatewaySettings, RunSettings)


def variables() -> Iterator[tuple[str, str]]:
    """Yield every setting's variable and default."""
    for kind in SETTINGS:
        for name, field in kind.model_fields.items():
            variable = field.validation_alias or f"TICKTHROTTLE_{name.upper()}"
            # A list is written without anything around it, an empty one as nothing.
            is_list = isinstance(field.default, frozenset)
            default = ",".join(field.default) if is_list else str(field.default)
            yield str(variable), default


@pytest.mark.parametrize(("variable", "default"), sorted(set(variables())))
def test_a_setting_is_in_the_table_with_its_default(
    variable: str, default: str
) -> None:
    """An operator finds every setting, and what it is when left alone."""
    rows = [s for s in OPERATIONS.splitlines() if s.startswith(f"| `{variable}` |")]
    assert len(rows) == 1, variable
    cell = rows[0].split("|")[2].strip().strip("`")
    if default not in ("None", "PydanticUndefined"):
        assert cell.replace(",", "") == re.sub(r"\.0$", "", default)


@pytest.mark.parametrize("kind", SETTINGS)
def test_a_setting_has_bounds_or_a_closed_set_and_is_frozen(
    kind: type[BaseSettings],
) -> None:
    """Settings are read once and cannot be changed afterwards."""
    assert kind.model_config["frozen"]
    assert kind.model_config["extra"] == "forbid"


@pytest.mark.parametrize("reason", REASONS)
def test_a_reason_for_refusal_is_explained(reason: str) -> None:
    """Whoever finds a dead letter finds the rule it broke."""
    assert f"`{reason}`" in OPERATIONS


@pytest.mark.parametrize("counter", [field.name for field in fields(Counters)])
def test_a_counter_of_the_gateway_is_explained(counter: str) -> None:
    """A number on a dashboard has a meaning."""
    assert f"| `{counter}` |" in OPERATIONS


@pytest.mark.parametrize(
    "counter", ["acknowledged", "refused", "retried", "in_doubt", "dropped_at_cap"]
)
def test_a_counter_of_a_feed_is_explained(counter: str) -> None:
    """The last line of a feed can be understood."""
    assert counter in {field.name for field in fields(FeedReport)}
    assert f"| `{counter}` |" in OPERATIONS
    assert f"`{TOO_LARGE}`" in OPERATIONS


def test_every_key_and_channel_is_explained() -> None:
    """Whoever looks into Redis knows what is there."""
    keys = Keys("tt")
    per_job = (keys.lease, keys.ledger, keys.batches, keys.stages)
    of_job = [key("<job>") for key in per_job]
    for key in (keys.meta, keys.last, keys.windows, keys.updates, *of_job):
        assert f"| `{key}` |" in OPERATIONS
    assert f"| `{keys.dead('<job>')}:<p>` |" in OPERATIONS


def log_lines() -> Iterator[str]:
    """Yield what gateway and throttle log, as far as it is written out."""
    for package in ("gateway", "throttle"):
        for path in sorted((ROOT / package).glob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                match node:
                    case ast.Call(
                        ast.Attribute(
                            ast.Name("log"), "info" | "warning" | "error" | "exception"
                        ),
                        [ast.Constant(str(event)), *_],
                    ):
                        yield event


@pytest.mark.parametrize("event", sorted(set(log_lines())))
def test_a_log_line_is_explained(event: str) -> None:
    """Whoever reads a log finds what happened and what it means."""
    assert f"`{event.replace('`', '')}`" in OPERATIONS


def test_every_command_is_in_the_readme() -> None:
    """A stranger learns of every part."""
    readme = (ROOT / "README.md").read_text("utf-8")
    for command in app.registered_commands:
        assert command.callback is not None
        assert f"`tickthrottle {command.callback.__name__}`" in readme


@pytest.mark.parametrize("code", list(CloseCode))
def test_a_close_code_is_in_the_table(code: CloseCode) -> None:
    """Whoever writes a client finds what to do."""
    rows = [row for row in PROTOCOL.splitlines() if row.startswith("| ")]
    assert any(str(code.value) in row.split("|")[1] for row in rows)


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


def test_links_between_the_documents_lead_somewhere() -> None:
    """No document points to a file that is not there."""
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("bench/*.md")]:
        for link in re.findall(r"\]\(([^)#]+)", path.read_text("utf-8")):
            if "://" not in link:
                assert (path.parent / link).exists(), f"{path.name}: {link}"


@pytest.mark.redis
def test_the_example_of_the_test_driver_holds() -> None:
    """A newcomer can copy the scenario and change it."""
    text = (ROOT / "docs" / "testing.md").read_text("utf-8")
    [example] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(example, "docs/testing.md", "exec"), {})
