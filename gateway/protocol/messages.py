"""What a client may say in tick.v1. Pure."""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, cast

import orjson

from gateway.protocol.market_instruments import MarketInstruments
from ingest.instrument_table.known_instruments import (
    MARKET,
    MAX_GROUP_CHARS,
    SECTOR,
    Instruments,
    has_members,
)
from ingest.series import instrument_of, is_series, series_of
from ingest.trade import InvalidTrade, check_isin
from tickthrottle_client.tick_v1 import ALL, ALL_GROUPS, GROUP, is_group

MAX_ID_CHARS = 36

MOST_LAST = 300
"""So many bars of a key a client may be sent when it subscribes; REST has more."""

MOST_FIELDS = 64
"""So many names of fields one subscribe may have."""

KNOWN_ISINS = 8_192
"""Keys that are remembered as valid, and not checked again."""

_known_keys: dict[str, str] = {}
_ISIN_LENGTH = re.compile(r"[0-9A-Za-z]{12}", re.ASCII)
_COMMA = re.compile(r"(?<!\\),")
_SHORT_CODE = re.compile(r"[0-9A-Z]{6}", re.ASCII)


MessageId: TypeAlias = int | str | None


class BadMessage(ValueError):
    """A client message that breaks a rule; ``code`` is that of the error frame."""

    def __init__(self, code: str, message: str, message_id: MessageId = None) -> None:
        super().__init__(message)
        self.code = code
        self.message_id = message_id


@dataclass(frozen=True, slots=True)
class Since:
    """The position up to which a returning client has everything.

    ``instruments`` names the instrument table by which it knows markets and sectors.
    """

    epoch: str
    offset: int
    instruments: str | None = None


class BarPosition(NamedTuple):
    """How far the bars were read: ``sequence`` counts the messages of an epoch.

    It has no holes. Positions of two epochs never compare. ``epoch`` is None before the
    first.
    """

    epoch: str | None = None
    sequence: int = 0


class StatusPosition(NamedTuple):
    """The newest status that a client was told: ``number`` of an epoch."""

    epoch: str
    number: int


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Add keys. ``min_interval_ms`` holds for all keys, until another is asked for.

    So do ``fields``, those that rows have by position; rows are objects without them.
    ``last`` is how many bars are wanted of each key of bars, ``bars_since`` what a
    returning client has of them, ``statuses_since`` what it was told of statuses.
    ``chain`` has the chain of windows told from now on: -1 anew, or on from an offset
    whose hash the client knows; None as before.
    """

    message_id: MessageId
    keys: tuple[str, ...]
    wants_snapshot: bool = True
    since: Since | None = None
    min_interval_ms: int = 0
    last: int = 1
    bars_since: BarPosition | None = None
    fields: tuple[str, ...] = ()
    statuses_since: StatusPosition | None = None
    chain: int | None = None


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """Drop keys."""

    message_id: MessageId
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ListKeys:
    """Ask which keys are held."""

    message_id: MessageId


@dataclass(frozen=True, slots=True)
class Ping:
    """Ask for a sign of life."""

    message_id: MessageId


@dataclass(frozen=True, slots=True)
class Auth:
    """Show a token, the first or a newer one."""

    message_id: MessageId
    token: str


Command: TypeAlias = Subscribe | Unsubscribe | ListKeys | Ping | Auth


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why one key was not accepted."""

    key: str
    code: str
    message: str

    def to_wire(self) -> dict[str, str]:
        """Return the entry of an ack's ``rejected``."""
        return {"key": self.key, "code": self.code, "message": self.message}


def parse(text: str) -> Command:
    """Read one client message; fields it does not know are ignored.

    Raises BadMessage, never anything else; it carries the id if that was readable.
    """
    try:
        message = orjson.loads(text)
    except ValueError as error:
        raise BadMessage("bad_json", f"not JSON: {error}") from None
    if not isinstance(message, dict):
        raise BadMessage("bad_json", "not a JSON object")
    message_id = _read_id(message)
    try:
        return _read_command(message, message_id)
    except _BadField as error:
        raise BadMessage("bad_request", str(error), message_id) from None


def read_id(text: str) -> MessageId:
    """Return the id of a message that will not be carried out, if it is readable."""
    try:
        return parse(text).message_id
    except BadMessage as error:
        return error.message_id


def check_key(key: str) -> Rejection | None:
    """Return why ``key`` cannot be watched, None if it is an ISIN, a series, or ``*``.

    Markets, sectors and groups are for whoever knows the instrument table to look up
    before.
    """
    if key == ALL:
        return None
    if is_series(key) or _ISIN_LENGTH.fullmatch(key):
        return _check_isin(key)
    if has_members(key):
        message = f"the {key.partition(':')[0]} of no instrument"
    elif has_members(of := key.removeprefix(GROUP)):
        message = f"the group of a {of.partition(':')[0]} of no instrument"
    elif is_group(key):
        names = f"{GROUP}market:NAME and {GROUP}sector:NAME"
        message = f"groups are called {names}, or {ALL_GROUPS}"
    elif _SHORT_CODE.fullmatch(key):
        message = "no instrument has this code here; ask by ISIN"
    else:
        message = "is neither an ISIN nor *"
    return Rejection(key, "unknown_key", message)


def _check_isin(key: str) -> Rejection | None:
    """Check the key of an instrument or of a series of one."""
    try:
        check_isin(instrument_of(key))
        if is_series(key):
            series_of(key)
    except InvalidTrade as error:
        return Rejection(key, "bad_isin", str(error).rpartition(": ")[2])
    except ValueError as error:
        return Rejection(key, "unknown_key", f"series {error}")
    return None


def split_keys(
    keys: Sequence[str], instruments: Instruments
) -> tuple[list[str], list[Rejection]]:
    """Sort out the keys that can be watched from those that cannot, in order.

    Those that can are interned: thousands of clients hold the same few thousand.
    """
    rejected: list[Rejection] = []
    if isinstance(instruments, MarketInstruments):
        refusals = {key: instruments.refusal(key) for key in keys}
        rejected = [Rejection(k, "not_served", r) for k, r in refusals.items() if r]
        keys = [key for key, refusal in refusals.items() if refusal is None]
    known = [_known_keys.get(key) for key in keys]
    if None not in known:
        return cast(list[str], known), rejected
    accepted: list[str] = []
    for key in keys:
        is_followed = ":" in key and _may_be_followed(key, instruments)
        rejection = None if is_followed else check_key(key)
        if is_followed:
            accepted.append(key)
        elif rejection is None:
            if len(_known_keys) >= KNOWN_ISINS:
                _known_keys.clear()
            accepted.append(_known_keys.setdefault(key, sys.intern(key)))
        else:
            rejected.append(rejection)
    return accepted, rejected


def _may_be_followed(key: str, instruments: Instruments) -> bool:
    if is_group(key):
        of = key.removeprefix(GROUP)
        # Without a name, the group of the instruments of which nobody has said it.
        if key == ALL_GROUPS or of in (MARKET, SECTOR):
            return True
        return has_members(of) and _may_be_followed(of, instruments)
    # What is not known yet will be: the table may be away, or not be loaded.
    if not len(instruments):
        return has_members(key) and len(key) <= MAX_GROUP_CHARS
    return instruments.members(key) is not None


def split_list(text: str) -> tuple[str, ...]:
    """Return what an address lists, separated by commas: each once, in order.

    A comma that belongs to a name has a backslash before it.
    """
    parts = _COMMA.split(text)
    return tuple(dict.fromkeys(p.replace("\\,", ",") for p in parts if p))


class _BadField(ValueError):
    pass


def _read_id(message: dict[str, Any]) -> MessageId:
    message_id = message.get("id")
    if message_id is None or type(message_id) is int:
        return message_id
    if isinstance(message_id, str) and len(message_id) <= MAX_ID_CHARS:
        return message_id
    rule = f"must be an integer or text up to {MAX_ID_CHARS} characters"
    raise BadMessage("bad_request", f"id: {rule}")


def _read_command(message: dict[str, Any], message_id: MessageId) -> Command:
    match message.get("op"):
        case "subscribe":
            return Subscribe(
                message_id,
                _read_keys(message),
                _read_snapshot(message),
                _read_since(message),
                _read_whole_number(message, "min_interval_ms"),
                _read_last(message),
                _read_bars_since(message),
                _read_fields(message),
                _read_statuses_since(message),
                _read_chain(message),
            )
        case "unsubscribe":
            return Unsubscribe(message_id, _read_keys(message))
        case "list":
            return ListKeys(message_id)
        case "ping":
            return Ping(message_id)
        case "auth":
            token = message.get("token")
            if not isinstance(token, str):
                raise _BadField("token: must be text")
            return Auth(message_id, token)
        case _:
            raise _BadField("op: must be subscribe, unsubscribe, list, ping or auth")


def _read_keys(message: dict[str, Any]) -> tuple[str, ...]:
    keys = message.get("keys")
    if not isinstance(keys, list) or not keys:
        raise _BadField("keys: must be a list with at least one key")
    if not all(isinstance(key, str) for key in keys):
        raise _BadField("keys: every key must be text")
    return tuple(dict.fromkeys(keys))


def _read_fields(message: dict[str, Any]) -> tuple[str, ...]:
    fields = message.get("fields")
    if fields is None:
        return ()
    is_list = isinstance(fields, list) and 1 <= len(fields) <= MOST_FIELDS
    if not is_list or not all(isinstance(name, str) for name in fields):
        raise _BadField(f"fields: must be a list of 1 to {MOST_FIELDS} names")
    return tuple(fields)


def _read_chain(message: dict[str, Any]) -> int | None:
    value = message.get("chain")
    if value is None:
        return None
    if value is True:
        return -1
    if type(value) is not int or value < 0:
        raise _BadField("chain: must be true, or an offset whose hash you know")
    return value


def _read_snapshot(message: dict[str, Any]) -> bool:
    value = message.get("snapshot", True)
    if not isinstance(value, bool):
        raise _BadField("snapshot: must be true or false")
    return value


def _read_whole_number(fields: dict[str, Any], name: str, of: str = "") -> int:
    value = fields.get(name, 0)
    if type(value) is not int or value < 0:
        raise _BadField(f"{of}{name}: must be a whole number from 0")
    return value


def is_last(number: int) -> bool:
    """Say whether so many bars of a key may be asked for."""
    return 1 <= number <= MOST_LAST


def _read_last(message: dict[str, Any]) -> int:
    last = message.get("last", 1)
    if type(last) is not int or not is_last(last):
        raise _BadField(f"last: must be a whole number from 1 to {MOST_LAST}")
    return last


def _read_position(
    message: dict[str, Any], name: str, count: str
) -> tuple[str, int] | None:
    since = message.get(name)
    if since is None:
        return None
    if not isinstance(since, dict) or count not in since:
        raise _BadField(f"{name}: must be an object with epoch and {count}")
    epoch = since.get("epoch")
    # A client that saw nothing yet has no epoch; it gets a full snapshot.
    if epoch is None:
        return None
    if not isinstance(epoch, str):
        raise _BadField(f"{name}.epoch: must be text")
    return epoch, _read_whole_number(since, count, f"{name}.")


def _read_bars_since(message: dict[str, Any]) -> BarPosition | None:
    position = _read_position(message, "bars_since", "sequence")
    return None if position is None else BarPosition(*position)


def _read_statuses_since(message: dict[str, Any]) -> StatusPosition | None:
    position = _read_position(message, "statuses_since", "number")
    return None if position is None else StatusPosition(*position)


def _read_since(message: dict[str, Any]) -> Since | None:
    position = _read_position(message, "since", "offset")
    if position is None:
        return None
    instruments = message["since"].get("instruments")
    if instruments is not None and not isinstance(instruments, str):
        raise _BadField("since.instruments: must be text")
    return Since(*position, instruments)
