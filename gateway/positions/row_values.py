"""What a row says, value by value, and the array of some of its values. Pure.

Values are the bytes of the row's JSON object: no number is read and written anew, but
the time as ``age``.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from throttle.contract.day_so_far import DayText

_FIELD = re.compile(rb'"((?:[^"\\]|\\.)*)":("(?:[^"\\]|\\.)*"|[^",}]+)')
_OF_ITEMS = frozenset(
    (b"isin", b"time", b"seq", b"price", b"size", b"revision", b"updates", b"corrects")
)
"""The fields of a body that have a position of their own, or none."""

_SUMS = (b"trades", b"volume", b"value", b"high", b"low")
_NULL = b"null"
FURTHER = b"further"
_CLASHING = frozenset((b"age", FURTHER))
"""Names of positions that a feed's field may have, too: that one has no position."""


class RowValues(NamedTuple):
    """A row's values by their names: its own ones, and the feed's further fields."""

    own: Mapping[bytes, bytes]
    further: Mapping[bytes, bytes]

    @classmethod
    def of(
        cls, body: bytes, sums: bytes, day: bytes, window: int | None
    ) -> "RowValues":
        """Read a row; ``window`` is that of the message, which ``age`` counts from."""
        fields = dict(_FIELD.findall(body))
        further = {n: v for n, v in fields.items() if n not in _OF_ITEMS}
        own = {n: v for n, v in fields.items() if n in _OF_ITEMS}
        own[b"age"] = b"%d" % ((window or 0) * 1_000 - int(own[b"time"]))
        # High and low are empty where no trade counts for the range.
        own.update((n, v) for n, v in zip(_SUMS, sums.split(b","), strict=False) if v)
        if day:
            parts = (part or _NULL for part in DayText.split(day))
            own[b"day"] = b"[%b]" % b",".join(parts)
        return cls(own, further)

    def encode(self, number: int, names: Sequence[bytes]) -> bytes:
        """Return the array of an instrument's number and these values.

        A value that is not there is null; nulls at the end are left out.
        """
        own, further = self.own, self.further
        values = [own.get(name) or further.get(name, _NULL) for name in names]
        if FURTHER in names:
            values[names.index(FURTHER)] = self._others(names)
        while values and values[-1] == _NULL:
            values.pop()
        return b"[%b]" % b",".join([b"%d" % number, *values])

    def _others(self, names: Sequence[bytes]) -> bytes:
        """Return the object of the further fields that have no position."""
        others = [n for n in self.further if n not in names or n in _CLASHING]
        if not others:
            return _NULL
        return b"{%b}" % b",".join(b'"%b":%b' % (n, self.further[n]) for n in others)


def further_names(body: bytes) -> Iterator[str]:
    """Yield the names of a row's further fields; one that is no ASCII as it is read."""
    for name, _ in _FIELD.findall(body):
        if name not in _OF_ITEMS:
            yield name.decode("utf-8", "replace")
