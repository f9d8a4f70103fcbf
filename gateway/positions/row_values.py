"""What a row says, value by value, and the array of some of its values. Pure.

Values are the bytes of the row's JSON object: no number is read and written anew, but
the time as ``age``.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from throttle.contract.day_so_far import DayText

_TRADE = re.compile(
    rb'\{"isin":"[^"]*","time":([0-9]+),"seq":([0-9]+),'
    rb'"price":([0-9.]+),"size":([0-9.]+)'
)
_FIELD = re.compile(rb'"((?:[^"\\]|\\.)*)"\s*:\s*("(?:[^"\\]|\\.)*"|[^",}\s]+)')
_OF_TRADES = (b"time", b"seq", b"price", b"size")
_RARE = frozenset((b"revision", b"updates", b"corrects"))
"""Fields behind those that have a position of their own."""

_SUMS = (b"volume", b"value", b"high", b"low")
_NULL = b"null"
FURTHER = b"further"
_CLASHING = frozenset((b"age", FURTHER))
"""Names of positions that a feed's field may have, too: that one has no position."""


class RowValues(NamedTuple):
    """A row's values by their names, and which of them are the feed's further fields.

    ``clashing`` are further fields by a name of ours.
    """

    values: Mapping[bytes, bytes]
    further: Collection[bytes]
    clashing: Mapping[bytes, bytes]

    @classmethod
    def of(
        cls, body: bytes, sums: bytes, day: bytes, window: int | None
    ) -> "RowValues":
        """Read a row; ``window`` is that of the message, which ``age`` counts from.

        What a body does not say is null: one that is no trade's harms nobody else.
        """
        trade, values = _read(body)
        further = [name for name in values if name not in _RARE]
        clashing = {n: values.pop(n) for n in further if n in _CLASHING}
        values.update(zip(_OF_TRADES, trade, strict=True))
        if trade[0].isdigit():
            values[b"age"] = b"%d" % ((window or 0) * 1_000 - int(trade[0]))
        values[b"trades"], *amounts = sums.split(b",")
        # High and low are empty where no trade counts for the range.
        values.update((n, v) for n, v in zip(_SUMS, amounts, strict=False) if v)
        if day:
            parts = (part or _NULL for part in DayText.split(day))
            values[b"day"] = b"[%b]" % b",".join(parts)
        return cls(values, further, clashing)

    def encode(self, number: int, names: Sequence[bytes]) -> bytes:
        """Return the array of an instrument's number and these values.

        A value that is not there is null; nulls at the end are left out.
        """
        get = self.values.get
        values = [get(name, _NULL) for name in names]
        if names[-1] == FURTHER:
            values[-1] = self._others(names)
        while values and values[-1] == _NULL:
            values.pop()
        return b"[%b]" % b",".join([b"%d" % number, *values])

    def _others(self, names: Sequence[bytes]) -> bytes:
        """Return the object of the further fields that have no position."""
        others = [n for n in self.further if n not in names or n in _CLASHING]
        if not others:
            return _NULL
        fields = {n: self.clashing.get(n) or self.values[n] for n in others}
        return b"{%b}" % b",".join(b'"%b":%b' % field for field in fields.items())


def further_names(body: bytes) -> Iterator[str]:
    """Yield the names of a row's further fields; one that is no ASCII as it is read."""
    for name in _read(body)[1]:
        if name not in _RARE:
            yield name.decode("utf-8", "replace")


def _read(body: bytes) -> tuple[Sequence[bytes], dict[bytes, bytes]]:
    """Return time, seq, price and size of a trade, and its other fields."""
    trade = _TRADE.match(body)
    if trade is not None:
        return trade.groups(), dict(_FIELD.findall(body, trade.end()))
    # A throttle writes them in that order and without spaces; JSON may be otherwise.
    values = dict(_FIELD.findall(body))
    values.pop(b"isin", None)
    return [values.pop(name, _NULL) for name in _OF_TRADES], values
