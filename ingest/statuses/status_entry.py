"""A status as Redis holds it: numbered, and with the newest trade before it. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ingest.statuses.trading_status import TradingStatus
from ingest.trade import InvalidTrade, Trade
from tickthrottle_client.trade_v1 import JsonNumber


@dataclass(frozen=True, slots=True, eq=False)
class StatusEntry:
    """One entry. ``number`` counts the statuses of a deployment, from 1, without holes.

    ``text`` is the JSON object as clients get it; ``bare`` is the same without prices
    of trades, for tokens that hold prices back.
    """

    status: TradingStatus
    number: int
    text: bytes
    bare: bytes

    @property
    def order(self) -> tuple[int, int]:
        """Say which of two of a slot is the newer one: the greater."""
        return self.status.time_us, self.number


def decode_added(fields: Mapping[bytes, bytes], number: int) -> StatusEntry:
    """Decode an entry of the stream. Raises ValueError, LookupError for a bad one."""
    taken_us, body = int(fields[b"taken"]), fields[b"status"]
    return _entry(number, taken_us, body, fields.get(b"last", b""))


def decode_current(value: bytes) -> StatusEntry:
    """Decode a value of the hash of current ones. Raises ValueError for a bad one."""
    _, number, taken_us, body, last = value.split(b"\n", 4)
    return _entry(int(number), int(taken_us), body, last)


def decode_shown(text: bytes) -> StatusEntry:
    """Decode ``StatusEntry.text``. Raises ValueError, LookupError for a bad one."""
    fields = json.loads(text, parse_float=JsonNumber)
    number, last = fields.pop("number"), fields.pop("last", None)
    taken_us = fields.pop("taken")
    if type(number) is not int or type(taken_us) is not int:
        raise ValueError("number, taken: must be whole numbers")
    end = b"" if last is None else text[text.rindex(b',"last":') : -1]
    return _with_text(TradingStatus.from_fields(fields), number, taken_us, end)


def _entry(number: int, taken_us: int, body: bytes, last: bytes) -> StatusEntry:
    fields = json.loads(body, parse_float=JsonNumber)
    if not isinstance(fields, dict):
        raise InvalidTrade("not_object", "status", body, "is not a JSON object")
    status = TradingStatus.from_fields(fields)
    return _with_text(status, number, taken_us, _last_of(last))


def _with_text(
    status: TradingStatus, number: int, taken_us: int, last: bytes
) -> StatusEntry:
    bare = replace(status, expected_price=None, expected_size=None)
    numbered = b',"number":%d,"taken":%d' % (number, taken_us)
    return StatusEntry(
        status,
        number,
        b"%b%b%b}" % (status.encode()[:-1], numbered, last),
        b"%b%b}" % (bare.encode()[:-1], numbered),
    )


def _last_of(payload: bytes) -> bytes:
    """Return the newest trade before a status as a field, empty if it is not known."""
    try:
        trade = Trade.from_wire(payload)
    except InvalidTrade:
        return b""
    return b',"last":{"time":%d,"seq":%d,"price":%b}' % (
        *trade.version,
        trade.price.encode(),
    )
