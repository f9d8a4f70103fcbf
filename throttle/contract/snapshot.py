"""The window snapshot: what the throttle publishes. Pure.

This module is a contract. A message is one header line of JSON and one line per row:

    {"epoch":"k3x9","offset":1235,"window":1773964804000,"windows":1,"published":...}
    KR7005930003 <version> <sums> {"isin":"KR7005930003","time":...,"price":199500,...}

so a row's JSON is carried as bytes and its price is never parsed on the way; sums are
those of ``row_sums.py``. In place of an ISIN the key of a series may stand
(``ingest/series.py``). Behind the last row and an empty line come days so far, a line
each (``day_so_far.py``): in a message of the channel of every row, as of it, in one of
the window log of those rows alone that start a day. A window that was joined with the
instrument table has two more fields at the header's end, ``"instruments"``, the
table's version, and ``"groups"``, a list (``group.py``). Before these stands
``"chain"``, the link of each window (``chain_v1.py``); a version before it has none.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from ingest.series import is_series
from throttle.contract.day_so_far import STARTS, day_after, decode_days, encode_days
from throttle.contract.group import Group, decode_groups, encode_groups
from throttle.contract.row_sums import RowSums, checked, count_of
from throttle.contract.trade_order import REVISION_CHARS
from tickthrottle_client.chain_v1 import Link
from tickthrottle_client.taking_back_v1 import REVISION

_GROUPS = b',"groups":'

NO_DAYS: Mapping[bytes, bytes] = {}


_ISIN_END = len('{"isin":"KR7005930003"')


def body_of(key: str, body: bytes) -> bytes:
    """Return the JSON object of an instrument's trade as that of a key of it.

    A series (``ingest/series.py``) shows its trades under a key of its own.
    """
    if not is_series(key):
        return body
    return b'{"isin":"%b"%b' % (key.encode(), body[_ISIN_END:])


class Row(NamedTuple):
    """An instrument in a window: its latest trade, and the sums of all it stands for.

    ``body`` is the JSON object clients get, without ``sums`` (``row_sums.py``). A row
    whose trades all came too late to be shown, or do not count for the last price, has
    the version and the body of the trade that is shown, and sums in full. Until it is
    published, the latter's row has ``trade_order.NO_VERSION`` and no body. ``day`` is
    the text of the day so far, empty where nothing is said of it. Once a trade that was
    shown was taken back, the version and the body have the instrument's revision.
    """

    isin: str
    version: bytes
    sums: bytes
    body: bytes
    day: bytes = b""

    @property
    def trades(self) -> int:
        """For how many trades it stands; 0 if nobody has counted them."""
        return count_of(self.sums)

    @property
    def row_sums(self) -> RowSums:
        """What it says of all its trades."""
        return RowSums.decode(self.sums, self.body)

    def merge(self, older: "Row") -> "Row":
        """Return this row, standing for the trades of an older one, too."""
        day = self.day
        if older.starts_day and not self.starts_day:
            day = STARTS + day if day else day_after(older.day, self.row_sums)
        return self._replace(sums=self.row_sums.fold(older.row_sums).encode(), day=day)

    def as_starting(self) -> "Row":
        """Return this row, saying the day, if it is known."""
        if not self.day or self.starts_day:
            return self
        return self._replace(day=STARTS + self.day)

    @property
    def starts_day(self) -> bool:
        """Whether the day begins, or has another open, with this row."""
        return self.day.startswith(STARTS)

    def revised(self, version: bytes) -> "Row":
        """Return this row with a version (``as_shown``), and the revision in it."""
        revision, body = int(version[:REVISION_CHARS]), self.body
        if revision:
            body = b'%b,"%b":%d}' % (body[:-1], REVISION.encode(), revision)
        return self._replace(version=version, body=body)

    def encode(self) -> bytes:
        """Encode as one line; ISIN and version have fixed places in it."""
        isin, version, sums, body, _ = self
        return b"%b %b %b %b" % (isin.encode(), version, sums, body)

    @classmethod
    def decode(cls, line: bytes, days: Mapping[bytes, bytes] = NO_DAYS) -> "Row":
        """Decode what ``encode`` wrote, with its day. Raises ValueError."""
        isin, version, sums, body = line.split(b" ", 3)
        day = days.get(isin, b"")
        return cls(isin.decode(), version, checked(sums), body, day)


class LastValue(NamedTuple):
    """What the last-value table holds of an instrument.

    ``offset`` is that of the window in which it changed last, ``day`` the text of its
    day as of that window (``Keys.days_so_far``); empty where it is not known.
    """

    isin: str
    version: bytes
    offset: int
    body: bytes
    day: bytes = b""

    @classmethod
    def decode(cls, isin: bytes, value: bytes) -> "LastValue":
        """Decode one field of the hash ``Keys.last``."""
        version, offset, body = value.split(b" ", 2)
        return cls(isin.decode(), version, int(offset), body)


@dataclass(frozen=True, slots=True)
class WindowSnapshot:
    """One published update: the instruments that changed in a window.

    ``window`` is the window's end, milliseconds since 1970. Offsets count windows
    without holes within an epoch; an update that stands for several ``windows``
    (after an outage) covers the offsets ``(offset - windows, offset]``.
    ``published_us`` is the Redis server's clock when it was published.
    ``instruments_version`` is that of the instrument table it was joined with, 0 if
    there was none, and then there are no groups. An update of several windows has
    groups that stand for all of them: trades, volume and value are sums, the rest is of
    each instrument's newest row. ``chain`` has the link of each of its windows.
    """

    epoch: str
    offset: int
    window: int
    windows: int
    published_us: int
    rows: tuple[Row, ...]
    groups: tuple[Group, ...] = ()
    instruments_version: int = 0
    chain: tuple[Link, ...] = field(default=(), compare=False)

    @classmethod
    def decode(cls, message: bytes) -> "WindowSnapshot":
        """Decode a message of the channel or the window log.

        Raises ValueError for anything the throttle would not have written.
        """
        message, _, days_of_rows = message.partition(b"\n\n")
        head, *lines = message.split(b"\n")
        # As bytes: their numbers may have more digits than a double keeps.
        start, _, groups = head.partition(_GROUPS)
        header = orjson.loads(start + b"}" if groups else head)
        try:
            days = decode_days(days_of_rows.split(b"\n")) if days_of_rows else {}
            rows = tuple(Row.decode(line, days) for line in lines)
            return cls(
                header["epoch"],
                header["offset"],
                header["window"],
                header["windows"],
                header["published"],
                rows,
                decode_groups(groups[:-1]) if groups else (),
                header.get("instruments", 0),
                tuple(map(Link.parse, header.get("chain", ()))),
            )
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"header {head!r}: {error!r}") from None

    @property
    def trades(self) -> int:
        """For how many trades it stands: a series' are its instrument's."""
        return sum(row.trades for row in self.rows if not is_series(row.isin))

    def encode(self) -> bytes:
        """Encode as the publish script does; ``decode`` gives back an equal one."""
        fields: dict[str, Any] = {
            "epoch": self.epoch,
            "offset": self.offset,
            "window": self.window,
            "windows": self.windows,
            "published": self.published_us,
        }
        if self.chain:
            fields["chain"] = [link.text for link in self.chain]
        if self.instruments_version:
            fields["instruments"] = self.instruments_version
        header = orjson.dumps(fields)
        if self.instruments_version or self.groups:
            header = header[:-1] + _GROUPS + encode_groups(self.groups) + b"}"
        rows = b"\n".join([header, *(row.encode() for row in self.rows)])
        days = [b"%b %b" % (r.isin.encode(), r.day) for r in self.rows if r.day]
        return rows + encode_days(days)
