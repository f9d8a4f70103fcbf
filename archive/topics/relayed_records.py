"""Windows, rows and bars as records of topics. Pure.

Names are those of the archive's columns. A row is there with what the instrument table
said of its instrument, and with the feed's further fields as ``fields``.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from archive.contract.segment import Segment
from archive.parquet.bar_table import BATCHES, StoredBars
from archive.parquet.tables import StoredTables
from archive.topics.record_values import (
    BAR_TOPIC,
    LATEST_TOPIC,
    ROW_TOPIC,
    WINDOW_TOPIC,
    ValueForm,
    plain,
)

RELAYED = "relayed"
"""The header of a transaction's last window or bar: all that was relayed up to it."""

ENTRY = "entry"
"""The header with a record's own entry of its log, as a segment's name."""

MOST_RUNS = 32
"""So many runs of entries without a hole are remembered, the newest."""

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
    tables: StoredTables | StoredBars, relayed: Sequence[Segment], form: ValueForm
) -> Iterator[Record]:
    """Yield the records of a transaction; the last one says what is ``relayed``."""
    records = (
        _of_bars(tables, form)
        if isinstance(tables, StoredBars)
        else _of_windows(tables, form)
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


def _of_windows(tables: StoredTables, form: ValueForm) -> Iterator[Record]:
    """Yield rows, newest values, then windows: who sees a window has its rows."""
    yield from _of_rows(tables.rows, form)
    yield from _of_delisted(tables)
    bodies = form.bodies(WINDOW_TOPIC, tables.windows)
    names = ("epoch", "offset", "window", "published")
    columns = (plain(tables.windows[name]) for name in names)
    for body, epoch, offset, end_ms, published_us in zip(bodies, *columns, strict=True):
        entry = Segment(published_us // 1_000, offset, offset, epoch, end_ms, end_ms)
        headers = [*_place(epoch, offset, end_ms), (ENTRY, entry.name.encode())]
        value = form.framed(WINDOW_TOPIC, body)
        yield Record(WINDOW_TOPIC, epoch.encode(), value, headers)


def _of_rows(rows: pa.Table, form: ValueForm) -> Iterator[Record]:
    latest: dict[str, tuple[bytes, bytes, Headers]] = {}
    columns = (plain(rows[n]) for n in ("isin", "epoch", "offset", "window", "price"))
    bodies = form.bodies(ROW_TOPIC, rows)
    places: dict[tuple[str, int], Headers] = {}
    # They are in the order of windows for each instrument.
    for body, isin, epoch, offset, end_ms, price in zip(bodies, *columns, strict=True):
        headers = places.get((epoch, offset))
        if headers is None:
            headers = places[epoch, offset] = _place(epoch, offset, end_ms)
        row = isin.encode(), body, headers
        yield Record(ROW_TOPIC, row[0], form.framed(ROW_TOPIC, body), headers)
        if price is not None:
            latest[isin] = row
    for key, body, headers in latest.values():
        yield Record(LATEST_TOPIC, key, form.framed(LATEST_TOPIC, body), headers)


def _of_delisted(tables: StoredTables) -> Iterator[Record]:
    """Yield what deletes the newest values of instruments that are not listed any more.

    One that has been traded since then has a newer value.
    """
    if not tables.delisted:
        return
    rows = tables.rows
    traded = set(rows["isin"].filter(pc.invert(rows["listed"])).to_pylist())
    names = ("epoch", "offset", "window")
    place = _place(*(plain(tables.windows[name])[-1] for name in names))
    for isin in tables.delisted:
        if isin not in traded:
            yield Record(LATEST_TOPIC, isin.encode(), None, place)


def _of_bars(tables: StoredBars, form: ValueForm) -> Iterator[Record]:
    batches = {}
    columns = (plain(tables.batches[name]) for name in BATCHES.names)
    for epoch, number, published_us, first_ms, last_ms, _ in zip(*columns, strict=True):
        entry = (published_us // 1_000, number, number, epoch, first_ms, last_ms)
        batches[epoch, number] = Segment(*entry).name.encode()
    bars = tables.bars.sort_by([("number", "ascending")])
    names = ("isin", "start", "width_ms", "epoch", "number")
    keys = (plain(bars[name]) for name in names)
    for body, isin, start_ms, width_ms, epoch, number in zip(
        form.bodies(BAR_TOPIC, bars), *keys, strict=True
    ):
        end_ms = start_ms + width_ms
        key = f"{isin}/{width_ms}/{start_ms}".encode()
        headers = [
            *_place(epoch, number, end_ms),
            (ENTRY, batches[epoch, number]),
        ]
        yield Record(BAR_TOPIC, key, form.framed(BAR_TOPIC, body), headers)


def _place(epoch: str, offset: int, end_ms: int) -> Headers:
    return [
        ("epoch", epoch.encode()),
        ("offset", b"%d" % offset),
        ("window", b"%d" % end_ms),
    ]
