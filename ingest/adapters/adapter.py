"""What an adapter is: how one exchange is asked and understood. Pure.

An adapter is one class: where to connect, what to send, what a frame means. All else
(connecting again, what came twice, what is missing, clocks, limits, metrics, recording)
is the same for each and not its business. ``docs/adapters.md`` has an example.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn, TypeVar

from ingest.conditions.sale_rules import Sale
from ingest.decimals import plain_decimal
from ingest.trade import EARLIEST_TIME_US, LATEST_TIME_US, InvalidTrade

T = TypeVar("T")

Frame = str | bytes
"""What a WebSocket message holds."""

Fetch = Callable[[str, Mapping[str, str] | None], bytes]
"""Fetches an address over HTTP; with fields it posts them as JSON. Raises AdapterFault.
"""


class Numbering(Enum):
    """How an exchange numbers the trades of one symbol."""

    NONE = "none"
    """Not at all: what comes twice cannot be told from two equal trades."""
    UNIQUE = "unique"
    """No number twice; not by one, perhaps not in order: arrival says what is newer."""
    BY_ONE = "by one"
    """Each number is one more than the last: what is missing can be told."""
    CUMULATIVE = "cumulative"
    """The day's volume up to and with the trade, in the same units as its size.

    A trade comes again if its volume, time, price and size came before.
    """


class ExchangeTrade(NamedTuple):
    """One trade as an exchange tells it.

    ``price`` and ``size`` are decimals as text, in any notation, or whole numbers.
    ``number`` is the exchange's, within the symbol and ``series`` (a board, a day);
    without one, and where numbers are ``UNIQUE`` in no order, the feed numbers by
    arrival. ``sent_us`` is when the exchange sent it, by its clock.
    """

    symbol: str
    time_us: int
    price: str | int
    size: str | int
    number: int | None = None
    series: str = ""
    extra: Mapping[str, Any] = {}
    sent_us: int | None = None
    sale: Sale | None = None
    """Its sale conditions: the adapter's table says what it counts for by them."""


class ExchangeCancel(NamedTuple):
    """An exchange takes a trade back: the one with this ``number`` in ``series``.

    ``time_us`` is when it said so, by its clock. A trade that this feed has not
    appended cannot be taken back: that is counted (``intake.CANCEL_NOT_APPLIED``).
    """

    symbol: str
    time_us: int
    number: int
    series: str = ""
    extra: Mapping[str, Any] = {}


class ExchangeCorrection(NamedTuple):
    """A trade that takes the place of the one with this ``number`` in its series.

    Where numbers are ``UNIQUE`` it gets that one's time and number in the log, too.
    """

    number: int
    trade: ExchangeTrade


class Skip(NamedTuple):
    """A frame, or a part of one, that is no trade. Counted under ``name``."""

    name: str
    may_be_trade: bool = False
    """Whether it may be a trade that this adapter does not read: an unknown event, a
    channel that is not followed. A feed to which only such come takes nothing.
    """


class Notice(NamedTuple):
    """What a feed's operator should know of what comes; warned of once in a feed.

    ``is_drift``: records have a form that this adapter does not know. Such frames are
    counted, though their records are read.
    """

    words: str
    is_drift: bool = False


class InstrumentDay(NamedTuple):
    """What a frame says of a symbol's day, for the instrument table; None: unsaid."""

    symbol: str
    prev_close: str | None = None
    """Close of the day before, as decimal text."""
    is_halted: bool | None = None


class ExchangeStatus(NamedTuple):
    """What a frame says of a symbol's trading (``trading_status.py``).

    It may be said with every trade: the feed tells what is new. ``extra`` are further
    fields of a status, decimals as text. Without a ``venue`` it is of all venues, and
    without a time of when its frame came.
    """

    symbol: str
    time_us: int | None
    status: str
    venue: str = ""
    extra: Mapping[str, Any] = {}


class Reply(NamedTuple):
    """What has to be sent back."""

    message: str


class Told(NamedTuple):
    """What the exchange says for people to read: logged as a warning."""

    words: str


class Reconnect(NamedTuple):
    """The exchange closes this connection, or it is of no more use."""

    words: str
    is_rate_limit: bool = False
    """Whether the exchange wants fewer connections or messages: a longer wait."""


class TurnedAway(NamedTuple):
    """The exchange refuses for good, for a wrong key for instance: the feed ends."""

    words: str


Piece = (
    ExchangeTrade
    | ExchangeCancel
    | ExchangeCorrection
    | Skip
    | InvalidTrade
    | InstrumentDay
    | ExchangeStatus
    | Notice
    | Reply
    | Told
    | Reconnect
    | TurnedAway
)
"""What a frame may consist of. An ``InvalidTrade`` is a record that cannot be read."""


class AdapterFault(RuntimeError):
    """Why a feed from an exchange cannot start, or go on; one sentence.

    ``can_pass`` says whether trying again later may help; ``is_rate_limit`` that the
    exchange wants fewer requests.
    """

    def __init__(
        self, words: str, *, can_pass: bool = False, is_rate_limit: bool = False
    ) -> None:
        super().__init__(words)
        self.can_pass = can_pass or is_rate_limit
        self.is_rate_limit = is_rate_limit


class BadChoice(AdapterFault):
    """An option or a key that is missing or wrong, before anything was tried."""


@dataclass(frozen=True, slots=True)
class Limit:
    """So many of something within so many seconds."""

    count: int
    within_s: float


@dataclass(frozen=True, slots=True)
class ExchangeInstrument:
    """What an exchange's own list says of a symbol. ``tick_size`` is decimal text."""

    symbol: str
    name: str = ""
    name_en: str = ""
    sector: str = ""
    tick_size: str = ""


class Adapter:
    """One exchange, on one connection: an instance is made for every connection.

    A user's adapter derives from this class, names what differs, and has ``subscribe``
    and ``decode``.
    """

    name: str = ""
    """What the feed is called in logs."""
    venue: str = ""
    """The field ``venue`` of every trade."""
    prefix: str = "QX"
    """Of the keys of what has no ISIN: two letters from QM to QZ."""
    url: str = ""
    """Of the WebSocket."""
    rest_url: str = ""
    """Where lists and keys are had, if they are."""
    numbering: Numbering = Numbering.NONE
    conditions: str = ""
    """The table of its trades' sale conditions: one of ours, or a path to a file."""
    secrets: tuple[str, ...] = ()
    """Keys it needs, each a variable TICKTHROTTLE_<NAME>_<SECRET>, or ..._FILE."""
    symbols_a_connection: int = 500
    most_connections: int = 8
    connects: Limit = Limit(5, 10.0)
    """Connections opened, over all of the feed's."""
    messages: Limit = Limit(5, 1.0)
    """Messages sent, on each connection."""
    ping: str | None = None
    """A message to send every ``ping_every_s``, where control frames do not do."""
    ping_every_s: float = 30.0
    silence_s: float | None = 120.0
    """Connect again when nothing came for so long; None: never."""
    max_frame_bytes: int = 2**20

    def __init__(self, symbols: Sequence[str], secrets: Mapping[str, str]) -> None:
        """``symbols`` are those of this connection, ``secrets`` by their names."""
        self.symbols = symbols
        self.secret = secrets

    def prepare(self, fetch: Fetch) -> None:
        """Get what a connection needs beforehand. Raises AdapterFault."""

    def address(self) -> str:
        """Return where to connect."""
        return self.url

    def subscribe(self) -> Iterable[str]:
        """Return what to send once connected."""
        raise NotImplementedError

    def decode(self, frame: Frame) -> Iterable[Piece]:
        """Yield what a frame holds. Raises InvalidTrade for a frame it cannot read.

        A record that cannot be read is yielded as an InvalidTrade: what is raised ends
        the frame. ``read_records`` does so for each record of a frame.
        """
        raise NotImplementedError

    def without_secrets(self, frame: Frame) -> Frame:
        """Return a frame as it may be recorded."""
        return frame

    @classmethod
    def canonical(cls, symbol: str) -> str:
        """Return a symbol as the exchange writes it in its frames.

        ``symbol`` is as a user typed it, in any case and with any separator. Raises
        BadChoice for what cannot be a symbol of this exchange.
        """
        return symbol

    @classmethod
    def isin_of(cls, symbol: str) -> str | None:
        """Return the ISIN of a symbol if a rule gives one."""
        return None

    @classmethod
    def listed(cls, fetch: Fetch) -> list[ExchangeInstrument]:
        """Return the exchange's own list, empty if there is none to be had."""
        return []

    @classmethod
    def chosen(cls, symbol: str) -> bool:
        """Tell whether a listed symbol is followed where nobody says which."""
        return True


def read_json(frame: Frame) -> Any:
    """Decode JSON; numbers with a point or an exponent stay text. Raises InvalidTrade.

    So a price leaves as it came. ``NaN`` and its like are refused: JSON has none.
    """
    try:
        return json.loads(frame, parse_float=str, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidTrade("not_json", "frame", frame, str(error)) from None


def read_records(
    records: Iterable[T], read: Callable[[T], Iterable[Piece]]
) -> Iterator[Piece]:
    """Yield what ``read`` makes of each record of a frame; a bad one costs itself only.

    What ``read`` raises becomes an InvalidTrade in the record's place.
    """
    for record in records:
        try:
            yield from read(record)
        except InvalidTrade as error:
            yield error
        except Exception as error:  # noqa: BLE001 - a user's adapter may raise anything
            yield not_decoded("record", record, error)


def not_decoded(name: str, value: object, error: Exception) -> InvalidTrade:
    """Return the refusal of what made an adapter raise something of its own."""
    words = f"{type(error).__name__}: {error}"[:_MOST_WORDS]
    return InvalidTrade("not_decoded", name, value, words)


def milliseconds(fields: Mapping[str, Any], name: str) -> int:
    """Return a field in milliseconds since 1970 as microseconds. Raises InvalidTrade.

    A value that is a time in another unit is refused with that unit's name.
    """
    value: int = field(fields, name, int)
    if not _is_time_us(value * 1_000):
        units = (unit for unit, to_us in _OTHER_UNITS if _is_time_us(to_us(value)))
        unit = next(units, None)
        seems = f"; this seems to be in {unit}" if unit else ""
        rule = f"must be in milliseconds since 1970{seems}"
        raise InvalidTrade("bad_time", name, value, rule)
    return value * 1_000


@lru_cache(maxsize=4_096)
def shortest_decimal(value: str | int) -> str:
    """Return a number without zeros at its end: ``70000000.0`` is ``70000000``.

    Raises ValueError as ``plain_decimal`` does.
    """
    text = plain_decimal(str(value))
    return text.rstrip("0").rstrip(".") if "." in text else text


_MOST_WORDS = 200
_OTHER_UNITS: tuple[tuple[str, Callable[[int], int]], ...] = (
    ("seconds", lambda value: value * 1_000_000),
    ("microseconds", lambda value: value),
    ("nanoseconds", lambda value: value // 1_000),
)


def _is_time_us(value: int) -> bool:
    return EARLIEST_TIME_US <= value < LATEST_TIME_US


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def field(fields: Mapping[str, Any], name: str, kind: type | tuple[type, ...]) -> Any:
    """Return a field of a decoded frame. Raises InvalidTrade, also for another type."""
    value = fields.get(name)
    if value is None:
        raise InvalidTrade("missing_field", name, None, "is required")
    if not isinstance(value, kind) or isinstance(value, bool):
        raise InvalidTrade("bad_field", name, value, "is of another type")
    return value
