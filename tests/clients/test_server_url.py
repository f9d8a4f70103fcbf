"""A password never appears in pieces, whatever is in it."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from archive.settings import ArchiveSettings
from ingest.process.redact import problems_of
from ingest.settings import TopicSettings
from ingest.tradelog.contract import LogUnusable
from tickthrottle_client.producer import TradeProducer
from tickthrottle_client.server_url import ENCODE, MASK, server_address, split_url

LETTERS = "QXZJ"
"""Of which no message of ours has one."""

PASSWORDS = st.text(f"{LETTERS}/?#@:[]%,.&=\\ ℀\t789", min_size=3, max_size=20)

PLACES = (
    "redis://:{}@127.0.0.1:6379/0",
    "redis://me:{}@127.0.0.1",
    "rediss+sentinel://:{}@a:26379,b/main/2",
    "unix://me:{}@/run/valkey.sock",
    "kafka://me:{}@a:9092/trades",
    "me:{}@127.0.0.1:6379",
    ":{}@127.0.0.1",
    "postgresql://me:{}@a:5432,b/market",
)


def messages_of(url: str) -> list[str]:
    """Return everything that is said of an address by what takes one."""
    said = [server_address(url)]
    for kind, name in ((TopicSettings, "redis_url"), (ArchiveSettings, "postgres_url")):
        try:
            kind(**{name: url})
        except ValidationError as error:
            said.append(problems_of(error))
    try:
        TopicSettings(kafka_servers=url)
    except ValidationError as error:
        said.append(problems_of(error))
    try:
        TradeProducer(url)
    except LogUnusable as error:
        said.append(str(error))
    return said


def pieces_of(password: str) -> set[str]:
    """Return all runs of three characters that are in no message by themselves."""
    runs = {password[n : n + 3] for n in range(len(password) - 2)}
    return {run for run in runs if set(run) & set(LETTERS)}


@given(PASSWORDS, st.sampled_from(PLACES))
@example("ZX#QQQ", "redis://:{}@127.0.0.1:6379")
@example("QQQ/ZZZ", "redis://:{}@127.0.0.1:6379")
@example("QX://ZZJ", "redis://:{}@127.0.0.1:6379")
@example("℀QXZ", "redis://:{}@127.0.0.1:6379")
@example("QX[ZJ", "rediss+sentinel://:{}@a:26379,b/main/2")
def test_no_piece_of_a_password_is_in_a_message(password: str, place: str) -> None:
    """Be it taken or refused, and whatever a library says of it."""
    for message in messages_of(place.format(password)):
        shown = [piece for piece in pieces_of(password) if piece in message]
        assert not shown, message


def test_an_address_that_is_not_clear_says_what_to_encode() -> None:
    """It is refused, though a client might guess another server from it."""
    for url in (
        "redis://:pa#ss@127.0.0.1:6379",
        "redis://:secret/word@127.0.0.1:6379",
        "redis://:sec?ret@127.0.0.1:6379",
        "redis://:p@ss/w#rd@127.0.0.1:6379",
        "redis://:se[cret@127.0.0.1:6379",
        "redis://:se://cret@127.0.0.1:6379",
        "redis+sentinel://:pa/ss@a:26379,b/main",
        "redis://host/0?password=p@ss",
        "postgresql://me:pa/ss@a/market",
    ):
        with pytest.raises(ValueError, match="percent-encoded") as caught:
            split_url(url)
        assert str(caught.value) == ENCODE
        assert server_address(url) == MASK


def test_an_address_is_shown_without_its_password() -> None:
    """And without what may be one."""
    for url, expected in (
        ("redis://:p%40s%2Fs@host:1/2?x=y", "redis://host:1/2"),
        ("redis://:p@ss@host:1", "redis://host:1"),
        ("unix://me:pass@/run/x", "unix:///run/x"),
        ("redis+sentinel://:p@a:1,[::1]/main", "redis+sentinel://a:1,[::1]/main"),
        ("redis://:password", MASK),
        ("redis://host:0", MASK),
        ("user:password", MASK),
        ("", ""),
    ):
        assert server_address(url) == expected
