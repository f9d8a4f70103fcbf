"""What is said of an instrument's day: with its quote, and in a list of all. Pure."""

import re
from contextlib import suppress
from decimal import Decimal
from operator import is_
from typing import Any

import orjson

from ingest.instrument_table.instrument_entry import InstrumentEntry
from throttle.contract.bar_intervals import DayBar
from throttle.contract.bars import Bar, number, subtract
from throttle.contract.day_so_far import DayText
from throttle.contract.products.movers import change_percent
from throttle.contract.snapshot import LastValue

LEFT_OUT = ("isin", "closed", "revision")
"""Fields of a bar that a day of a quote does not have."""

_PRICE = re.compile(rb'"price":([0-9.]+)')
_PRICES = ("open", "high", "low", "close")
_OF_SESSION = (*_PRICES, "volume", "value", "trades")


def encode_day(
    row: LastValue,
    bar: DayBar | None,
    entry: InstrumentEntry | None,
    regular: LastValue | None = None,
) -> bytes:
    """Return the JSON object of an instrument's newest day, ``null`` if there is none.

    It is the day so far as of the row; only where that is not known the newest ``bar``
    of a day, which analytics have made. ``end`` is null if no bar says it.
    ``prev_close``, ``change`` and ``percent`` are null where the instrument table has
    no previous close, the last two also where the day has no close. ``regular`` is the
    row of the series of the regular session, if there is one: once it has traded on
    this day, its figures are among those of the day, and the change is that of its
    close.
    """
    day, of_bar = _day_so_far(row), None if bar is None else bar.bar
    shown = of_bar if day is None else day
    if shown is None:
        return b"null"
    fields = {k: v for k, v in shown.to_object().items() if k not in LEFT_OUT}
    fields["end"] = None
    if of_bar is not None and of_bar.start_ms == shown.start_ms:
        fields["end"] = of_bar.end_ms
    close = shown.close
    session = None if regular is None else _day_so_far(regular)
    if session is not None and session.start_ms == shown.start_ms:
        close = session.close
        of_it = {k: v for k, v in session.to_object().items() if k in _OF_SESSION}
        fields["regular"] = of_it
    return orjson.dumps(fields | _change(close, entry))


def _day_so_far(row: LastValue) -> Bar | None:
    """Return the day so far as of a row, whose end is not known.

    Without a trade that counts for the last price it has no close.
    """
    if not row.day:
        return None
    day = DayText.split(row.day)
    price = _PRICE.search(row.body) if day.open else None
    prices = day.open, day.high, day.low, b"" if price is None else price[1]
    opened, high, low, close = (Decimal(p.decode()) if p else None for p in prices)
    volume, value = Decimal(day.volume.decode()), Decimal(day.value.decode())
    return Bar(
        *(row.isin, int(day.start), 0, opened, high, low, close),
        *(volume, value, int(day.trades), False, 0),
    )


class DayBodies:
    """Encoded days, each anew only once it, or what the table says of it, changes."""

    def __init__(self) -> None:
        self._bodies: dict[str, tuple[tuple[object, ...], bytes]] = {}

    def encode(
        self,
        row: LastValue,
        bar: DayBar | None,
        entry: InstrumentEntry | None,
        regular: LastValue | None = None,
    ) -> bytes:
        """Return ``encode_day`` of an instrument's newest day."""
        kept, made_of = self._bodies.get(row.isin), (row, bar, entry, regular)
        if kept is not None and all(map(is_, kept[0], made_of)):
            return kept[1]
        body = encode_day(*made_of)
        self._bodies[row.isin] = made_of, body
        return body


def encode_prices(day: DayBar) -> bytes:
    """Return the JSON object of a day in short: whose it is, its span, its prices."""
    bar = day.bar
    prices = {name: number(getattr(bar, name)) for name in _PRICES}
    span = {"isin": bar.isin, "start": bar.start_ms, "end": bar.end_ms}
    return orjson.dumps(span | prices)


def _change(close: Decimal | None, entry: InstrumentEntry | None) -> dict[str, Any]:
    close_before = None if entry is None else entry.prev_close
    before = None if close_before is None else Decimal(close_before)
    change: dict[str, Any] = {"prev_close": None, "change": None, "percent": None}
    if before:
        change["prev_close"] = number(before)
        if close is not None:
            change["change"] = number(subtract(close, before))
            # A rate of more than 28 digits is none that anybody could read.
            with suppress(ArithmeticError):
                change["percent"] = number(change_percent(before, close))
    return change
