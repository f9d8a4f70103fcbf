"""The day so far of an instrument: all its trades since the day began. Pure.

This module is a contract. A day is one of the instrument's calendar
(``session_calendar.py``), and has all rows of the windows whose last millisecond is in
it, with the trades of instruments that were never shown. It is as of a row, and the
days as of later rows are this one and the sums of these rows. As text it is
``start_ms`` (when the day began), the sums in full (``row_sums.py``) and ``open``, the
price of the day's first trade that counts for the last price, empty if there is none,
with commas between them: ``1773964800000,412,91700,18291450000,199900,198700,199000``.

A row that ``starts`` a day, or changes its open, says so by a ``!`` before the text:
whoever adds up rows takes this day in place of their own.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from throttle.contract.row_sums import RowSums
from throttle.contract.trade_order import NO_VERSION, VERSION_CHARS

STARTS = b"!"
"""Before the day of a row from which sums begin anew."""


def encode_days(lines: Sequence[bytes]) -> bytes:
    """Return what stands behind the rows of a message; a line is ``<isin> <text>``."""
    return b"\n\n" + b"\n".join(lines) if lines else b""


def decode_days(lines: Iterable[bytes]) -> dict[bytes, bytes]:
    """Return the texts by ISIN. Raises ValueError."""
    return {isin: text for isin, text in (line.split(b" ") for line in lines)}


class DayText(NamedTuple):
    """A day's text in its parts; those that there is no trade for are empty."""

    start: bytes
    trades: bytes
    volume: bytes
    value: bytes
    high: bytes
    low: bytes
    open: bytes

    @classmethod
    def split(cls, text: bytes) -> "DayText":
        """Split what a row says of its day. Raises ValueError."""
        parts = text.removeprefix(STARTS).split(b",")
        if len(parts) != len(cls._fields):
            raise ValueError(f"{text[:80]!r}: is no day")
        return cls(*parts)

    def sums(self) -> RowSums:
        """Return its sums as numbers. Raises ValueError."""
        return RowSums.decode(b",".join(self[1:-1]), b"")


def day_object(text: bytes) -> bytes:
    """Return the JSON object that clients get of a day, given as text of a row.

    ``high``, ``low`` and ``open`` are left out where no trade counts for them.
    """
    day = DayText.split(text)
    encoded = b'{"start":%b,"trades":%b,"volume":%b,"value":%b' % day[:4]
    if day.high:
        encoded += b',"high":%b,"low":%b' % (day.high, day.low)
    return b'%b,"open":%b}' % (encoded, day.open) if day.open else encoded + b"}"


def day_after(text: bytes, sums: RowSums) -> bytes:
    """Return the text of a day after a further row with these sums; empty if not known.

    It starts the day if the text does.
    """
    day = DayText.split(text)
    total = day.sums().fold(sums)
    if total.amounts is None:
        return b""
    starts = STARTS if text.startswith(STARTS) else b""
    return b"%b%b,%b,%b" % (starts, day.start, total.encode(), day.open)


class DaySoFar(NamedTuple):
    """A day as numbers; ``first`` is the version of the trade that opened it."""

    start_ms: int
    sums: RowSums
    first: bytes
    open: bytes

    def text(self) -> bytes:
        """Return what a row says of it."""
        return b"%d,%b,%b" % (self.start_ms, self.sums.encode(), self.open)


class DayValue(NamedTuple):
    """What the hash ``Keys.days_so_far`` holds of an instrument.

    The day is as of the instrument's newest row, or later, if it was never shown.
    ``first`` is the version of the trade that opened it, empty if none did.
    """

    first: bytes
    text: bytes

    def encode(self) -> bytes:
        """Encode as the value of a field."""
        return b"%b %b" % (self.first or NO_VERSION, self.text)

    @classmethod
    def decode(cls, value: bytes) -> "DayValue":
        """Decode what ``encode`` wrote. Raises ValueError."""
        first, text = value.split(b" ")
        if len(first) != VERSION_CHARS:
            raise ValueError(f"{value[:80]!r}: is no day")
        DayText.split(text)
        return cls(b"" if first == NO_VERSION else first, text)

    def day(self) -> DaySoFar:
        """Return it as numbers. Raises ValueError."""
        day = DayText.split(self.text)
        return DaySoFar(int(day.start), day.sums(), self.first, day.open)
