"""What people may write for a moment or a place in the log, and what it means."""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, NamedTuple

import typer

from ingest.trade import LATEST_TIME_US

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST_MS = LATEST_TIME_US // 1000
_MOMENT_RULE = (
    "must be a time as in ISO 8601 (UTC unless it says otherwise) or milliseconds "
    "since 1970"
)
_DIGITS = re.compile(r"[0-9]{1,15}", re.ASCII)
_PLACE = re.compile(r"([0-9]{1,3}):([0-9]{1,19})", re.ASCII)

_MOST_LINES = 100_000

Limit = Annotated[int, typer.Option(help="How many at most.")]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        help="Begin here: a time as in ISO 8601, UTC unless it says otherwise, or "
        "milliseconds since 1970. Without it, the newest windows are shown.",
    ),
]
FromPlace = Annotated[
    str | None,
    typer.Option(
        "--from",
        help="Begin here: a time (ISO 8601 or milliseconds), or the position of a "
        "trade as `trades` prints it, <partition>:<position>.",
    ),
]
Isin = Annotated[str | None, typer.Option(help="Only this instrument.")]


class BadArgument(ValueError):
    """An argument that breaks its rule; names the option, the value and the rule."""


class Place(NamedTuple):
    """A place in the log, written ``<partition>:<position>``."""

    partition: int
    position: int

    def __str__(self) -> str:
        return f"{self.partition}:{self.position}"


def parse_moment(option: str, text: str | None) -> int | None:
    """Return a moment in milliseconds since 1970; None for none. Raises BadArgument."""
    if text is None:
        return None
    moment_ms = _moment_ms(text)
    if moment_ms is None:
        raise BadArgument(f"{option} {text}: {_MOMENT_RULE}")
    return moment_ms


def parse_moment_or_place(option: str, text: str | None) -> int | Place | None:
    """Return a moment in milliseconds or a place; None for none. Raises BadArgument."""
    match = _PLACE.fullmatch(text or "")
    if match and int(match[2]) < 2**63:
        return Place(int(match[1]), int(match[2]))
    try:
        return parse_moment(option, text)
    except BadArgument as error:
        raise BadArgument(f"{error}, or <partition>:<position>") from None


def check_number(option: str, number: int) -> None:
    """Raise BadArgument for a number of lines nobody can mean."""
    if not 1 <= number <= _MOST_LINES:
        raise BadArgument(f"{option} {number}: must be from 1 to {_MOST_LINES}")


def format_moment(moment_ms: int) -> str:
    """Write a moment as in ISO 8601, to the millisecond, in UTC."""
    moment = _EPOCH + timedelta(milliseconds=moment_ms)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment_ms % 1000:03d}Z"


def _moment_ms(text: str) -> int | None:
    if _DIGITS.fullmatch(text):
        moment_ms = int(text)
    else:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        moment_ms = (moment - _EPOCH) // timedelta(milliseconds=1)
    return moment_ms if 0 <= moment_ms < _LATEST_MS else None
