"""The day so far of an instrument: all its trades since the day began. Pure.

This module is a contract. A day is one of the instrument's calendar
(``session_calendar.py``), and has all rows of the windows that began in it, with the
trades of instruments that were never shown. It is as of a row, and the days as of later
rows are this one and the sums of these rows. As text it is ``start_ms`` (when the day
began), the sums in full (``row_sums.py``) and ``open``, the price of the day's first
trade that counts for the last price, empty if there is none, with commas between them:
``1773964800000,412,91700,18291450000,199900,198700,199000``.

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
    """Return what stands behind the rows of a message (``snapshot.py``).

    A line is ``<isin> <text>``. Instruments that have no row are among those of a
    message of the channel.
    """
    return b"\n\n" + b"\n".join(lines) if lines else b""


def decode_days(lines: Iterable[bytes]) -> dict[bytes, bytes]:
    """Return the texts by ISIN. Raises ValueError."""
    pairs = (line.split(b" ") for line in lines)
    return dict((isin, text) for isin, text in pairs)


def day_object(text: bytes) -> bytes:
    """Return the JSON object that clients get of a day, given as text of a row.

    ``high``, ``low`` and ``open`` are left out where no trade counts for them.
    """
    start, trades, volume, value, high, low, first = text.lstrip(STARTS).split(b",")
    said = b'{"start":%b,"trades":%b,"volume":%b,"value":%b' % (
        *(start, trades, volume, value),
    )
    if high:
        said += b',"high":%b,"low":%b' % (high, low)
    return b'%b,"open":%b}' % (said, first) if first else said + b"}"


def day_after(text: bytes, sums: RowSums) -> bytes:
    """Return the text of a day after a further row with these sums.

    Empty if they are not known: then nobody can say it.
    """
    start, *of_day, price = text.split(b",")
    total = RowSums.decode(b",".join(of_day), b"").fold(sums)
    if total.amounts is None:
        return b""
    return b"%b,%b,%b" % (start, total.encode(), price)


class DaySoFar(NamedTuple):
    """A day as numbers.

    ``first`` is the version of the trade whose price ``open`` is; both are empty if
    there is none.
    """

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
        if len(first) != VERSION_CHARS or text.count(b",") != 6:
            raise ValueError(f"{value[:80]!r}: is no day")
        return cls(b"" if first == NO_VERSION else first, text)

    def day(self) -> DaySoFar:
        """Return it as numbers. Raises ValueError."""
        start, *sums, price = self.text.split(b",")
        known = RowSums.decode(b",".join(sums), b"")
        return DaySoFar(int(start), known, self.first, price)
