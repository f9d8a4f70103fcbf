"""Windows, rows and bars as records of topics: a JSON object each. Pure.

Names are those of the archive's columns, numbers have every digit, times are whole
numbers since 1970: milliseconds, or microseconds where the column has them (``time``,
``published``). What nobody has said is left out. A row is there with what the
instrument table said of its instrument, and with the feed's further fields as
``fields``.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from archive.contract.segment import Segment
from archive.parquet.bar_table import BARS, BATCHES, PRICES, SUMS, StoredBars
from archive.parquet.tables import (
    AMOUNTS,
    ROWS,
    WINDOWS,
    StoredTables,
    exact_digits,
)

WINDOW_TOPIC, ROW_TOPIC, LATEST_TOPIC, BAR_TOPIC = "windows", "rows", "latest", "bars"
"""What follows the prefix and a dot in the name of a topic."""

RELAYED = "relayed"
"""The header of a transaction's last window or bar: all that was relayed up to it."""

ENTRY = "entry"
"""The header with a record's own entry of its log, as a segment's name."""

MOST_RUNS = 32
"""So many runs of entries without a hole are remembered, the newest."""

_WINDOW_NAMES = tuple(name for name in WINDOWS.names if name != "packed")
_ROW_NAMES = tuple(
    name for name in ROWS.names if not name.endswith("_text") and name != "position"
)
_DECIMALS = frozenset(("price", "size", *AMOUNTS, "prev_close", *PRICES, *SUMS))

Headers = list[tuple[str, str | bytes | None]]


class Record(NamedTuple):
    """A record, and which topic it is for. Without a value its key is deleted.

    It has no time of its own: a broker takes what is older than it keeps for done with.
    """

    topic: str
    key: bytes
    value: bytes | None
    headers: Headers


def records_of(
    tables: StoredTables | StoredBars, relayed: Sequence[Segment]
) -> Iterator[Record]:
    """Yield the records of a transaction; the last one says what is ``relayed``."""
    records = (
        _of_bars(tables) if isinstance(tables, StoredBars) else _of_windows(tables)
    )
    last: Record | None = None
    for record in records:
        if last is not None:
            yield last
        last = record
    if last is not None:
        said = ",".join(segment.name for segment in relayed).encode()
        yield last._replace(headers=[*last.headers, (RELAYED, said)])


def with_segment(relayed: Sequence[Segment], segment: Segment) -> list[Segment]:
    """Return what is relayed after a segment, in the order of publication."""
    if relayed and relayed[-1].is_followed_by(segment):
        return [*relayed[:-1], relayed[-1].join(segment)]
    return [*relayed, segment][-MOST_RUNS:]


def said_in(headers: Any, name: str) -> str:
    """Return a header of a record as text, empty if it has none of that name."""
    value = dict(headers or ()).get(name)
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


def read_relayed(headers: Any) -> list[Segment]:
    """Return what the headers of a record say is relayed. Raises ValueError."""
    said = said_in(headers, RELAYED)
    segments = [Segment.parse(name) for name in filter(None, said.split(","))]
    found = [segment for segment in segments if segment is not None]
    if not found or len(found) != len(segments):
        raise ValueError(f"header {RELAYED} {said[:80]!r}: must be names of segments")
    return found


def read_entry(headers: Any) -> Segment:
    """Return the entry of its log that a record is of. Raises ValueError."""
    name = said_in(headers, ENTRY)
    segment = Segment.parse(name)
    if segment is None:
        raise ValueError(f"header {ENTRY} {name[:80]!r}: must be a segment's name")
    return segment


def _of_windows(tables: StoredTables) -> Iterator[Record]:
    """Yield rows, newest values, then windows: who sees a window has its rows."""
    yield from _of_rows(tables.rows)
    yield from _of_delisted(tables)
    values = _objects(tables.windows, _WINDOW_NAMES)
    names = ("epoch", "offset", "window", "published")
    columns = (_plain(tables.windows[name]) for name in names)
    for value, epoch, offset, end_ms, published_us in zip(
        values, *columns, strict=True
    ):
        entry = Segment(published_us // 1_000, offset, offset, epoch, end_ms, end_ms)
        headers = [*_place(epoch, offset, end_ms), (ENTRY, entry.name.encode())]
        yield Record(WINDOW_TOPIC, epoch.encode(), value, headers)


def _of_rows(rows: pa.Table) -> Iterator[Record]:
    latest: dict[str, tuple[bytes, bytes, Headers]] = {}
    columns = (_plain(rows[n]) for n in ("isin", "epoch", "offset", "window", "price"))
    values = _objects(rows, _ROW_NAMES)
    places: dict[tuple[str, int], Headers] = {}
    # They are in the order of windows for each instrument.
    for value, isin, epoch, offset, end_ms, price in zip(values, *columns, strict=True):
        headers = places.get((epoch, offset))
        if headers is None:
            headers = places[epoch, offset] = _place(epoch, offset, end_ms)
        row = isin.encode(), value, headers
        yield Record(ROW_TOPIC, *row)
        if price is not None:
            latest[isin] = row
    yield from (Record(LATEST_TOPIC, *row) for row in latest.values())


def _of_delisted(tables: StoredTables) -> Iterator[Record]:
    """Yield what deletes the newest values of instruments that are not listed any more.

    One that has been traded since then has a newer value.
    """
    if not tables.delisted:
        return
    rows = tables.rows
    traded = set(rows["isin"].filter(pc.invert(rows["listed"])).to_pylist())
    names = ("epoch", "offset", "window")
    place = _place(*(_plain(tables.windows[name])[-1] for name in names))
    for isin in tables.delisted:
        if isin not in traded:
            yield Record(LATEST_TOPIC, isin.encode(), None, place)


def _of_bars(tables: StoredBars) -> Iterator[Record]:
    batches = {}
    columns = (_plain(tables.batches[name]) for name in BATCHES.names)
    for epoch, number, published_us, first_ms, last_ms, _ in zip(*columns, strict=True):
        entry = (published_us // 1_000, number, number, epoch, first_ms, last_ms)
        batches[epoch, number] = Segment(*entry).name.encode()
    bars = tables.bars.sort_by([("number", "ascending")])
    names = ("isin", "start", "width_ms", "epoch", "number")
    keys = (_plain(bars[name]) for name in names)
    for value, isin, start_ms, width_ms, epoch, number in zip(
        _objects(bars, BARS.names), *keys, strict=True
    ):
        end_ms = start_ms + width_ms
        key = f"{isin}/{width_ms}/{start_ms}".encode()
        headers = [
            *_place(epoch, number, end_ms),
            (ENTRY, batches[epoch, number]),
        ]
        yield Record(BAR_TOPIC, key, value, headers)


def _place(epoch: str, offset: int, end_ms: int) -> Headers:
    return [
        ("epoch", epoch.encode()),
        ("offset", b"%d" % offset),
        ("window", b"%d" % end_ms),
    ]


def _objects(table: pa.Table, names: Sequence[str]) -> Iterator[bytes]:
    """Yield each line as a JSON object of these columns, without what is null."""
    heads = [f'"{name}":' for name in names]
    columns = [_texts(table, name) for name in names]
    for texts in zip(*columns, strict=True):
        said = (h + t for h, t in zip(heads, texts, strict=True) if t is not None)
        yield f"{{{','.join(said)}}}".encode()


def _texts(table: pa.Table, name: str) -> list[str | None]:
    """Return a column as JSON, None where it is null."""
    column = table[name]
    if name in _DECIMALS:
        texts: list[str | None] = exact_digits(table, name).to_pylist()
        return texts
    if name == "fields":
        # JSON already.
        texts = column.to_pylist()
        return texts
    if pa.types.is_string(column.type):
        encoded = {
            text: orjson.dumps(text).decode()
            for text in pc.unique(column).to_pylist()
            if text is not None
        }
        return [None if text is None else encoded[text] for text in column.to_pylist()]
    if pa.types.is_boolean(column.type):
        words = {True: "true", False: "false", None: None}
        return [words[value] for value in column.to_pylist()]
    return [None if value is None else str(value) for value in _plain(column)]


def _plain(column: pa.ChunkedArray) -> list[Any]:
    """Return a column's values; times are whole numbers."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    values: list[Any] = column.to_pylist()
    return values
