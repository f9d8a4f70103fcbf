"""The window snapshot: what the throttle publishes. Pure.

This module is a contract. A message is one header line of JSON and one line per row:

    {"epoch":"k3x9","offset":1235,"window":1773964804000,"windows":1,"published":...}
    KR7005930003 <version> <sums> {"isin":"KR7005930003","time":...,"price":199500,...}

so a row's JSON is carried as bytes and its price is never parsed on the way; sums are
those of ``row_sums.py``. A window that was joined with the issue table has two more
fields at the header's end, ``"issues"``, the table's version, and ``"groups"``, a list
(``group.py``).
"""

from dataclasses import dataclass
from typing import NamedTuple

import orjson

from throttle.contract.group import Group, decode_groups, encode_groups
from throttle.contract.row_sums import RowSums, checked, count_of

_GROUPS = b',"groups":'


class Row(NamedTuple):
    """One issue in a window: its latest trade, and the sums of those it stands for.

    ``body`` is the JSON object clients get, without ``sums`` (``row_sums.py``). A row
    whose trades all came too late to be shown, or do not count for the last price, has
    the version and the body of the trade that is shown, and sums in full. Until it is
    published, the latter's row has ``trade_order.NO_VERSION`` and no body.
    """

    isin: str
    version: bytes
    sums: bytes
    body: bytes

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
        return self._replace(sums=self.row_sums.fold(older.row_sums).encode())

    def encode(self) -> bytes:
        """Encode as one line; ISIN and version have fixed places in it."""
        isin, version, sums, body = self
        return b"%b %b %b %b" % (isin.encode(), version, sums, body)

    @classmethod
    def decode(cls, line: bytes) -> "Row":
        """Decode what ``encode`` wrote. Raises ValueError."""
        isin, version, sums, body = line.split(b" ", 3)
        return cls(isin.decode(), version, checked(sums), body)


class LastValue(NamedTuple):
    """What the last-value table holds of an issue.

    ``offset`` is that of the window in which the issue changed last.
    """

    isin: str
    version: bytes
    offset: int
    body: bytes

    @classmethod
    def decode(cls, isin: bytes, value: bytes) -> "LastValue":
        """Decode one field of the hash ``Keys.last``."""
        version, offset, body = value.split(b" ", 2)
        return cls(isin.decode(), version, int(offset), body)


@dataclass(frozen=True, slots=True)
class WindowSnapshot:
    """One published update: the issues that changed in a window.

    ``window`` is the window's end, milliseconds since 1970. Offsets count windows
    without holes within an epoch; an update that stands for several ``windows``
    (after an outage) covers the offsets ``(offset - windows, offset]``.
    ``published_us`` is the Redis server's clock when it was published.
    ``issues_version`` is that of the issue table it was joined with, 0 if there was
    none, and then there are no groups. An update of several windows has groups that
    stand for all of them: trades, volume and value are sums, the rest is of each
    issue's newest row.
    """

    epoch: str
    offset: int
    window: int
    windows: int
    published_us: int
    rows: tuple[Row, ...]
    groups: tuple[Group, ...] = ()
    issues_version: int = 0

    @classmethod
    def decode(cls, message: bytes) -> "WindowSnapshot":
        """Decode a message of the channel or the window log.

        Raises ValueError for anything the throttle would not have written.
        """
        head, *lines = message.split(b"\n")
        # As bytes: their numbers may have more digits than a double keeps.
        start, _, groups = head.partition(_GROUPS)
        header = orjson.loads(start + b"}" if groups else head)
        try:
            rows = tuple(Row.decode(line) for line in lines)
            return cls(
                header["epoch"],
                header["offset"],
                header["window"],
                header["windows"],
                header["published"],
                rows,
                decode_groups(groups[:-1]) if groups else (),
                header.get("issues", 0),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"header {head!r}: {error!r}") from None

    def encode(self) -> bytes:
        """Encode as the publish script does; ``decode`` gives back an equal one."""
        fields: dict[str, str | int] = {
            "epoch": self.epoch,
            "offset": self.offset,
            "window": self.window,
            "windows": self.windows,
            "published": self.published_us,
        }
        if self.issues_version:
            fields["issues"] = self.issues_version
        header = orjson.dumps(fields)
        if self.issues_version or self.groups:
            header = header[:-1] + _GROUPS + encode_groups(self.groups) + b"}"
        return b"\n".join([header, *(row.encode() for row in self.rows)])
