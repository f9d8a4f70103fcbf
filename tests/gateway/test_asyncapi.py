"""The AsyncAPI document: valid, whole, and true of the code.

Every frame that a gateway sends in these tests is checked against it as well
(tests/gateway/servers.py).
"""

import json
import re
from typing import Any, get_args

import pytest
from jsonschema import Draft7Validator

from gateway.protocol.messages import Command, parse
from tests.gateway.asyncapi import DOCUMENT_PATH, check_message, document
from tests.paths import ROOT
from tickthrottle_client.tick_v1 import CloseCode

SCHEMA = ROOT / "tests" / "schemas" / "asyncapi-3.0.0.json"
PROTOCOL = (DOCUMENT_PATH.parent / "protocol.md").read_text("utf-8")
MESSAGES = document()["components"]["messages"]


def test_the_document_is_valid() -> None:
    """Any tool for AsyncAPI 3 can read it."""
    schema = json.loads(SCHEMA.read_text("utf-8"))
    errors = list(Draft7Validator(schema).iter_errors(document()))
    assert errors == []


def test_an_example_is_what_its_message_says() -> None:
    """What can be copied is right."""
    for message in MESSAGES.values():
        for example in message["examples"]:
            check_message(example["payload"])
            if "type" not in example["payload"]:
                parse(json.dumps(example["payload"]))


def test_every_message_is_in_an_operation() -> None:
    """Whoever generates code from it gets all of it, and knows who says what."""
    operations = document()["operations"]

    def names(operation: str) -> set[str]:
        references = operations[operation]["messages"]
        return {reference["$ref"].rpartition("/")[2] for reference in references}

    sent, received = names("sendFrames"), names("receiveCommands")
    assert sent | received == MESSAGES.keys()
    assert document()["channels"]["stream"]["messages"].keys() == MESSAGES.keys()
    assert sent == {
        n for n, m in MESSAGES.items() if "type" in m["payload"]["required"]
    }
    assert len(received) == len(get_args(Command))


def test_close_codes_are_those_of_the_code() -> None:
    """None is missing, none is invented."""
    codes = document()["channels"]["stream"]["x-close-codes"]
    assert codes.keys() == {code.value for code in CloseCode}


def test_error_codes_are_those_of_the_protocol() -> None:
    """The two documents agree."""
    table = set(re.findall(r"^\| ((?:`[a-z_]+`(?:, )?)+) \|", PROTOCOL, re.MULTILINE))
    told = {code for cell in table for code in re.findall(r"`([a-z_]+)`", cell)}
    ack, error = MESSAGES["ack"]["payload"], MESSAGES["error"]["payload"]
    rejected = ack["properties"]["rejected"]["items"]["properties"]["code"]["enum"]
    assert set(rejected) | set(error["properties"]["code"]["enum"]) <= told


def test_every_example_of_the_protocol_is_described() -> None:
    """The two documents agree about messages too."""
    examples = re.findall(r'^\{"(?:type|op)".*\}$', PROTOCOL, re.MULTILINE)
    assert len(examples) >= 10
    for example in examples:
        check_message(json.loads(example))


@pytest.mark.parametrize(
    "message",
    [
        {"type": "unheard of"},
        {"type": "pong", "server_time": "now"},
        {"type": "pong", "server_time": 1, "extra": 1},
        {"type": "notice", "code": "restart", "message": "x"},
    ],
)
def test_what_is_not_described_is_found(message: dict[str, Any]) -> None:
    """The judge is not blind."""
    with pytest.raises(AssertionError):
        check_message(message)
