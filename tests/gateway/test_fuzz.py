"""Anything a client may send: no crash, no leak, the right answer."""

import json
import os
import socket
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.stream.commands import ClientCommands
from tests.conftest import eventually
from tests.examples import many
from tests.gateway.asyncapi import check_message, document
from tests.gateway.publisher import Publisher
from tests.gateway.samples import SAMSUNG, make_board, make_commands, make_row
from tests.gateway.servers import Gateway, upgrade_request

EXAMPLES = [
    json.dumps(example["payload"])
    for message in document()["components"]["messages"].values()
    for example in message["examples"]
]
ODD_TEXT = [
    *(
        "",
        "null",
        "[]",
        "{}",
        '"',
        "[" * 10_000,
        "1e999",
        "NaN",
        "-0",
        "\x00",
        "\ufeff{}",
    ),
    '{"op":"subscribe","keys":["*"],"since":{"epoch":"k3x9","offset":99999999999999999999}}',
    '{"op":"subscribe","keys":["*"],"since":{"epoch":"k3x9","offset":1e400}}',
    '{"op":"subscribe","keys":' + json.dumps(["x" * 60_000]) + "}",
    '{"op":"subscribe","keys":["*"],"keys":[5]}',
    '{"op":"ping","id":' + "9" * 400 + "}",
    '{"op":"ping","id":9223372036854775808}',
    '{"op":"ping","id":-18446744073709551616}',
    '{"op":"auth","token":"' + "a." * 20_000 + '"}',
]
MUTATED = 100_000


def make_tolerant_session() -> ClientCommands:
    """Return what answers a client that is never too fast and never sent away."""
    return make_commands(make_board(make_row()), messages_per_second=10**9)


def check_answer(commands: ClientCommands, text: str) -> None:
    """Have a message answered; the answer is one that the document describes."""
    answer = json.loads(commands.answer(text, 0.0, 0))
    check_message(answer)
    assert answer["type"] in ("ack", "pong", "error")
    while commands.delivery.next_frame() is not None:
        pass


def mutate(text: str, chance: Random) -> str:
    """Return a message with a few characters dropped, doubled, swapped or replaced."""
    characters = list(text)
    for _ in range(chance.randint(1, 4)):
        if not characters:
            break
        at = chance.randrange(len(characters))
        match chance.randrange(5):
            case 0:
                del characters[at]
            case 1:
                characters.insert(at, characters[at])
            case 2:
                other = chance.randrange(len(characters))
                characters[at], characters[other] = characters[other], characters[at]
            case 3:
                characters[at] = chance.choice('{}[]":,0-9.eE\\u \t\n*KRé\U0001f600')
            case _:
                characters[at:at] = chance.choice(EXAMPLES)[: chance.randint(1, 30)]
    return "".join(characters)


def test_every_odd_message_has_an_answer() -> None:
    """Nothing that JSON can say, or cannot, raises."""
    for text in EXAMPLES + ODD_TEXT:
        check_answer(make_tolerant_session(), text)


@pytest.mark.slow
def test_a_hundred_thousand_mutated_messages_have_answers() -> None:
    """None raises, none is answered with anything unheard of, nothing grows."""
    chance = Random(2_026)
    commands = make_tolerant_session()
    for number in range(MUTATED):
        text = mutate(chance.choice(EXAMPLES), chance)
        answer = json.loads(commands.answer(text, 0.0, 0))
        assert answer["type"] in ("ack", "pong", "error"), text
        if number % 100 == 0:
            check_message(answer)
            commands = make_tolerant_session()


JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
FIELDS = st.sampled_from(
    ["op", "id", "keys", "since", "snapshot", "min_interval_ms", "token", "epoch"]
)
OPS = st.sampled_from(["subscribe", "unsubscribe", "list", "ping", "auth"])


@given(st.dictionaries(FIELDS, JSON_VALUES), OPS)
@settings(max_examples=many(500))
def test_any_value_in_any_field_has_an_answer(message: dict[str, Any], op: str) -> None:
    """A field of another kind is named, not stumbled over."""
    check_answer(make_tolerant_session(), json.dumps({**message, "op": op}))


def frame(opcode: int, payload: bytes, chance: Random) -> bytes:
    """Return a client's frame, its header as often wrong as right."""
    first = opcode | chance.choice((0x80, 0x80, 0x80, 0x00, 0xC0, 0xF0))
    size = len(payload)
    masked = chance.choice((0x80, 0x80, 0x80, 0x00))
    head = bytes((first, masked | (size if size < 126 else 126)))
    if size >= 126:
        head += size.to_bytes(2)
    return head + (b"\0\0\0\0" if masked else b"") + payload


@pytest.mark.redis
def test_bytes_of_any_kind_hurt_nobody_else(
    publisher: Publisher,
    gateway: Gateway,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A thousand connections send rubbish; one that behaves gets its windows.

    Nor do they fill the log; uvicorn itself would trace each text that is not UTF-8.
    """
    chance = Random(7)
    with gateway.stream() as healthy:
        healthy.subscribe(SAMSUNG)
        for number in range(1_000):
            with socket.create_connection((gateway.host, gateway.port)) as client:
                client.settimeout(10)
                if number % 10:
                    client.sendall(upgrade_request())
                rubbish = b"".join(
                    frame(
                        chance.choice((0, 1, 1, 2, 3, 8, 9, 10, 15)),
                        mutate(chance.choice(EXAMPLES), chance).encode()[:65_000]
                        if chance.random() < 0.7
                        else os.urandom(chance.randint(0, 300)),
                        chance,
                    )
                    for _ in range(chance.randint(1, 10))
                )
                try:
                    client.sendall(rubbish)
                except OSError:
                    # It was shown the door while it was talking.
                    continue
            if number % 100 == 0:
                publisher.publish(make_row(SAMSUNG, seq=number + 2))
                assert healthy.take("update")["data"][0]["seq"] == number + 2
        eventually(lambda: gateway.health()["clients"] == 1, 20)
    assert [r.getMessage() for r in caplog.records if r.levelname == "ERROR"] == []
