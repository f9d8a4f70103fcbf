"""What is said of an instrument's day: with its quote, and in a list of all. Pure."""

from decimal import Decimal
from typing import Any

import orjson

from ingest.instrument_table.instrument_entry import InstrumentEntry
from throttle.contract.bar_intervals import DayBar
from throttle.contract.bars import number, subtract
from throttle.contract.products.movers import change_percent

LEFT_OUT = ("isin", "closed", "revision")
"""Fields of a bar that a day of a quote does not have."""

_PRICES = ("open", "high", "low", "close")


def encode_day(day: DayBar | None, entry: InstrumentEntry | None) -> bytes:
    """Return the JSON object of an instrument's newest day, ``null`` if there is none.

    ``prev_close``, ``change`` and ``percent`` are null where the instrument table has
    no previous close, the last two also where the day has no close.
    """
    if day is None:
        return b"null"
    fields = {k: v for k, v in day.bar.to_object().items() if k not in LEFT_OUT}
    return orjson.dumps(fields | _change(day.bar.close, entry))


class DayBodies:
    """Encoded days, each anew only once it, or what the table says of it, changes."""

    def __init__(self) -> None:
        self._bodies: dict[str, tuple[DayBar, InstrumentEntry | None, bytes]] = {}

    def encode(
        self, isin: str, day: DayBar | None, entry: InstrumentEntry | None
    ) -> bytes:
        """Return ``encode_day`` of an instrument's newest day."""
        if day is None:
            return b"null"
        kept = self._bodies.get(isin)
        if kept is None or kept[0] is not day or kept[1] is not entry:
            kept = self._bodies[isin] = day, entry, encode_day(day, entry)
        return kept[2]


def encode_prices(day: DayBar) -> bytes:
    """Return the JSON object of a day in short: whose it is, its span, its prices."""
    bar = day.bar
    prices = {name: number(getattr(bar, name)) for name in _PRICES}
    span = {"isin": bar.isin, "start": bar.start_ms, "end": bar.end_ms}
    return orjson.dumps(span | prices)


def _change(close: Decimal | None, entry: InstrumentEntry | None) -> dict[str, Any]:
    close_before = None if entry is None else entry.prev_close
    before = None if close_before is None else Decimal(close_before)
    if not before:
        return {"prev_close": None, "change": None, "percent": None}
    if close is None:
        return {"prev_close": number(before), "change": None, "percent": None}
    try:
        percent = number(change_percent(before, close))
    except ArithmeticError:
        # A rate of more than 28 digits is none that anybody could read.
        percent = None
    return {
        "prev_close": number(before),
        "change": number(subtract(close, before)),
        "percent": percent,
    }
