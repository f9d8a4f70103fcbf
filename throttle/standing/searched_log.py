"""The log as looking back reads it: what is wanted is found, what was read is kept.

To read and check an entry takes 9 µs, to take it apart 10, to search one that is kept
0.1. Batches that take trades back follow each other, and look at the same part of the
log.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import zip_longest
from math import inf
from typing import NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from ingest.trade import Trade
from ingest.tradelog.contract import Chunk, Head, Ranges
from throttle.standing.settled import LoggedTrade
from throttle.window.row_schema import (
    CANCEL_PREFIX,
    NOT_LAST_PREFIX,
    REFUSED_PREFIX,
    records,
    with_columns,
)

EVERYTHING: Collection[int] = ()
"""Of an instrument whose trades are wanted whatever their numbers are."""

Wanted = Mapping[str, Collection[int]]
"""Instruments, and of each the numbers of the trades that are wanted; a trade that
corrects or cancels such a number is wanted, too.
"""

MOST_BYTES = 96 * 1024 * 1024
"""So many bytes of entries are kept, the newest: some 600,000 entries."""

_MOST_OF_PIECE = 65_536
_MOST_TIMES = 1_000
_OLDEST_KNOWN_S = 10.0
_ENTRY = pa.schema(
    [
        ("isin", pa.string()),
        ("number", pa.int64()),
        ("target", pa.int64()),
        ("append_ms", pa.int64()),
        ("position", pa.int64()),
        ("payload", pa.binary()),
    ]
)
"""A trade, or what takes one back; ``target`` is the number that it takes back."""


class PastLog(Protocol):
    """What looking back asks of a log (``LogReader``)."""

    def server_id(self) -> str:
        """Return which process answers, NO_SERVER if what was read is never lost."""

    def head(self) -> Head:
        """Return where the log begins."""

    def positions_at(
        self, time_ms: int, partitions: Sequence[int] = ()
    ) -> Mapping[int, int]:
        """Return for each partition the last position before a time that is over."""

    def read(self, ranges: Ranges) -> Iterator[tuple[int, Chunk]]:
        """Yield the entries with ``after < position <= upto``, by partition."""


class Found(NamedTuple):
    """Entries that are wanted, and how many of the log were ``read`` for it.

    What was kept from before does not count.
    """

    entries: list[LoggedTrade]
    read: int


class SearchedLog:
    """A log that keeps at most so many bytes of what was read, the newest.

    ``check`` returns the rows of a partition's chunk (``trade_rows``, of every trade).
    """

    def __init__(
        self,
        open_log: Callable[[], PastLog],
        check: Callable[[int, Chunk, int], pa.Table],
        most_bytes: int = 0,
    ) -> None:
        self.open = open_log
        self._check = check
        self._most_bytes = most_bytes
        self._pieces: dict[int, list[_Piece]] = {}
        self._positions: dict[int, dict[int, int]] = {}
        self._oldest_ms: int | None = None
        self._asked_s = -inf

    def oldest_ms(self) -> int | None:
        """Return when its oldest entry was appended, some seconds ago; None: none.

        Raises what reading the log raises.
        """
        now_s = time.monotonic()
        if now_s >= self._asked_s + _OLDEST_KNOWN_S:
            self._oldest_ms = self.open().head().oldest_ms
            self._asked_s = now_s
        return self._oldest_ms

    def positions_at(
        self, time_ms: int, partitions: Collection[int]
    ) -> Mapping[int, int]:
        """Return for each partition the last position before a time that is over.

        A broker is asked once for a time. Raises what reading the log raises.
        """
        if len(self._positions) >= _MOST_TIMES:
            self._positions.clear()
        positions = self._positions.setdefault(time_ms, {})
        if unknown := [p for p in partitions if p not in positions]:
            positions |= self.open().positions_at(time_ms, unknown)
        return {p: positions[p] for p in partitions}

    def search(self, ranges: Ranges, wanted: Wanted, end_ms: int) -> Iterator[Found]:
        """Yield what is wanted, ``after < position <= upto``, by partition.

        What is read for it counts as appended before ``end_ms``. Raises what reading
        the log raises.
        """
        holes = {}
        for p, (after, upto) in ranges.items():
            pieces = self._pieces.get(p, ())
            over = [one for one in pieces if one.after < upto and after < one.upto]
            for piece in over:
                yield Found([*piece.search(p, (after, upto), wanted)], 0)
            edges = [after, *(edge for one in over for edge in one[:2]), upto]
            pairs = zip(edges[::2], edges[1::2], strict=True)
            holes[p] = [(begin, end) for begin, end in pairs if begin < end]
        for spans in zip_longest(*holes.values()):
            given = zip(holes, spans, strict=True)
            reading = {p: span for p, span in given if span is not None}
            at = {p: after for p, (after, _) in reading.items()}
            for p, chunk in self.open().read(reading):
                entries = _entries_of(self._check(p, chunk, end_ms))
                piece = _Piece(at[p], chunk.upto, entries)
                self._keep(p, piece)
                yield Found([*piece.search(p, ranges[p], wanted)], len(chunk))
                at[p] = chunk.upto
        self._forget()

    def _keep(self, partition: int, piece: "_Piece") -> None:
        """Keep a piece where it belongs, as one with its neighbours if they are small.

        So there are few pieces, and an entry is copied few times.
        """
        if not self._most_bytes:
            return
        pieces = self._pieces.setdefault(partition, [])
        at = sum(one.upto <= piece.after for one in pieces)
        pieces.insert(at, piece)
        while at and pieces[at - 1].may_join(pieces[at], pieces[at]):
            pieces[at - 1 : at + 1] = [pieces[at - 1].joined(pieces[at])]
            at -= 1
        while at + 1 < len(pieces) and pieces[at].may_join(pieces[at + 1], pieces[at]):
            pieces[at : at + 2] = [pieces[at].joined(pieces[at + 1])]

    def _forget(self) -> None:
        every = sorted(
            (piece.newest_ms, partition, piece.entries.nbytes)
            for partition, pieces in self._pieces.items()
            for piece in pieces
        )
        size = sum(one for _, _, one in every)
        for _, partition, of_it in every:
            if size <= self._most_bytes:
                break
            size -= of_it
            del self._pieces[partition][0]


class _Piece(NamedTuple):
    """The entries of a partition with ``after < position <= upto``, to be searched."""

    after: int
    upto: int
    entries: pa.Table

    @property
    def newest_ms(self) -> int:
        newest: int | None = pc.max(self.entries["append_ms"]).as_py()
        return newest or 0

    def search(
        self, partition: int, span: tuple[int, int], wanted: Wanted
    ) -> Iterator[LoggedTrade]:
        """Yield what is wanted between two positions."""
        entries = self.entries
        after, upto = (pa.scalar(place, pa.int64()) for place in span)
        is_it = pc.is_in(entries["isin"], pa.array(wanted, pa.string()))
        is_it = pc.and_(is_it, pc.greater(entries["position"], after))
        is_it = pc.and_(is_it, pc.less_equal(entries["position"], upto))
        if all(wanted.values()):
            every = {number for some in wanted.values() for number in some}
            of_them = pa.array(every, pa.int64())
            own, taken = (pc.is_in(entries[n], of_them) for n in ("number", "target"))
            is_it = pc.and_(is_it, pc.or_(own, taken))
        rows = records(entries.filter(is_it), _ENTRY.names)
        for isin, number, target, append_ms, position, payload in rows:
            numbers = wanted[isin]
            if not numbers or number in numbers or target in numbers:
                place = append_ms, partition, position
                yield LoggedTrade(*place, Trade.from_wire(payload))

    def may_join(self, later: "_Piece", new: "_Piece") -> bool:
        """Tell whether it and the one that follows should be one, as one is new."""
        size = len(self.entries) + len(later.entries)
        is_worth_it = size <= min(3 * len(new.entries) + 1, _MOST_OF_PIECE)
        return self.upto == later.after and is_worth_it

    def joined(self, later: "_Piece") -> "_Piece":
        entries = pa.concat_tables([self.entries, later.entries]).combine_chunks()
        return _Piece(self.after, later.upto, entries)


def _entries_of(rows: pa.Table) -> pa.Table:
    """Return what the checked rows of a chunk are, without what was refused.

    A correction has two rows, as a trade and as what takes one back, and is one entry.
    """
    is_taking = pc.starts_with(rows["key"], CANCEL_PREFIX)
    trades = _without_prefix(rows.filter(pc.invert(is_taking)), NOT_LAST_PREFIX)
    is_refused = pc.starts_with(trades["key"], REFUSED_PREFIX)
    trades = trades.filter(pc.invert(is_refused))
    targets: dict[tuple[str, int, int], int | None] = {}
    taking = _without_prefix(rows.filter(is_taking), CANCEL_PREFIX)
    cancels, of_cancels = [], []
    rows_of_taking = records(taking, ("position", "payload"))
    for place, (position, payload) in enumerate(rows_of_taking):
        trade = Trade.from_wire(payload)
        if trade.is_trade:
            targets[trade.isin, trade.seq, position] = trade.takes_back
        else:
            cancels.append(place)
            of_cancels.append(trade.takes_back)
    own: list[int | None] = [None] * len(trades)
    if targets:
        own = list(map(targets.get, records(trades, ("key", "seq", "position"))))
    tables = (
        _table_of(trades, own),
        _table_of(taking.take(pa.array(cancels, pa.int64())), of_cancels),
    )
    return pa.concat_tables(tables).combine_chunks()


def _table_of(rows: pa.Table, targets: Sequence[int | None]) -> pa.Table:
    append_ms = pc.divide(rows["append_time"].cast(pa.int64()), 1_000)
    columns = (rows["position"], rows["payload"])
    of_each = (rows["key"], rows["seq"], pa.array(targets, pa.int64()), append_ms)
    return pa.table([*of_each, *columns], schema=_ENTRY)


def _without_prefix(rows: pa.Table, prefix: str) -> pa.Table:
    keys = rows["key"]
    rest = pc.utf8_slice_codeunits(keys, len(prefix))
    return with_columns(
        rows, {"key": pc.if_else(pc.starts_with(keys, prefix), rest, keys)}
    )
