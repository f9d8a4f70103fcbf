"""From the rows of a conflated batch to what is published. Pure.

A batch is every window between two cuts, those without a trade too. Trades that do not
count for the last price are nobody's latest. They are in the sums of their instrument's
row in the window; where it has no other trade its row shows none of its own
(``NO_VERSION``), and restates what is shown once it is published.
"""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from ingest.series import is_series
from throttle.contract.cut import Cut, window_ends
from throttle.contract.dead_letter import DeadLetter, unpack
from throttle.contract.ledger import NOTHING, Turnover
from throttle.contract.row_sums import ONE, RowSums
from throttle.contract.snapshot import Row, body_of
from throttle.contract.trade_order import NO_VERSION, ORDER, encode_version
from throttle.window import turnover
from throttle.window.control_rows import decode_cuts, decode_read
from throttle.window.fold_rows import (
    END,
    OddAmounts,
    folded_sums,
    with_ends,
)
from throttle.window.group_rows import GroupRows
from throttle.window.instrument_columns import NO_INSTRUMENTS, PLACE, InstrumentColumns
from throttle.window.open_batch import join_cuts
from throttle.window.row_schema import (
    ABANDONED_KEY,
    CANCEL_PREFIX,
    CUT_KEY,
    FIRST,
    FOLDED,
    NOT_LAST_PREFIX,
    READ_KEY,
    REFUSED_PREFIX,
    SKIPPED_PREFIX,
    SUM_PREFIX,
    records,
    with_columns,
)
from throttle.window.trade_sums import unpack as unpack_amounts
from throttle.window.traded import NO_TRADES, BatchTrades
from throttle.window.turnover import ByPartition
from throttle.window.vector_check import row_bodies


class Abandoned(RuntimeError):
    """A batch was given up while its window was open: there is nothing to publish."""


@dataclass(slots=True)
class BatchWindow:
    """What a window publishes: each instrument's latest row, and its partition."""

    end_ms: int
    rows: dict[str, tuple[int, Row]] = field(default_factory=dict)

    def offer(self, partition: int, row: Row) -> None:
        """Add a partition's latest row of an instrument; of several the newest stays.

        Each has the sums of all. One without a trade of its own is older than any.
        """
        other = self.rows.get(row.isin)
        # Of one version in two partitions the greater partition's, the same each time.
        if other is None or (row.version, partition) > (other[1].version, other[0]):
            self.rows[row.isin] = (partition, row)

    def of_partition(self, partition: int) -> list[Row]:
        """Return the rows whose trade stood in a partition."""
        return [row for p, row in self.rows.values() if p == partition]


@dataclass(slots=True)
class PartitionCount:
    """What a batch read of one partition, and what of it is no instrument's latest.

    Counts are those of ``ledger.Books``. ``traded`` is what trades come to: those
    ``read``, ``superseded``, ``not_last``, and those ``shown`` by rows.
    """

    read: int = 0
    extra: int = 0
    blanks: int = 0
    superseded: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    unkept: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    unknown_instrument: int = 0
    not_last: int = 0
    taken_back: int = 0
    unknown_target: int = 0
    traded: dict[str, Turnover] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch ready to publish: every window between two cuts.

    ``counts[i]`` is of the i-th partition of ``end``. ``read_ms`` is when the last task
    had read its part, by its machine's clock. ``servers`` are those read, none where
    what was read of a log is never lost. ``groups`` is None without an instrument
    table. ``sums`` are of all windows together, if there are several: those of each
    instrument that has several trades in them. ``traded`` is what all trades come to.
    ``taking_back`` are instruments some of whose trades its entries take back, and the
    partitions that these stand in.
    """

    start: Cut
    end: Cut
    windows: Sequence[BatchWindow]
    counts: Sequence[PartitionCount]
    dead_letters: Sequence[DeadLetter]
    read_ms: int = 0
    instruments: InstrumentColumns = NO_INSTRUMENTS
    groups: GroupRows | None = None
    sums: Mapping[str, bytes] = field(default_factory=dict)
    traded: BatchTrades = NO_TRADES
    taking_back: Mapping[str, frozenset[int]] = field(default_factory=dict)
    servers: frozenset[str] = frozenset()


def with_sums_of_rows(
    sums: Mapping[str, bytes],
    windows: Sequence[BatchWindow],
    isins: Iterable[str],
    left_out: Container[tuple[int, str]] = (),
) -> dict[str, bytes]:
    """Return a batch's sums, of some instruments what their rows add up to.

    Rows of the windows and instruments that are ``left_out`` are not published.
    """
    sums = dict(sums)
    for isin in isins:
        rows = [
            window.rows[isin][1].row_sums
            for window in windows
            if isin in window.rows and (window.end_ms, isin) not in left_out
        ]
        sums.pop(isin, None)
        # A single row says its own.
        if len(rows) > 1:
            sums[isin] = reduce(RowSums.fold, rows).encode()
    return sums


def assemble(
    conflated: pa.Table,
    window_ms: int,
    instruments: InstrumentColumns = NO_INSTRUMENTS,
    known_bodies: Mapping[bytes, bytes] | None = None,
) -> Batch:
    """Turn a conflated batch into its windows, oldest first.

    It needs the columns that ``conflate.py`` returns, and ``place`` if it was joined
    with ``instruments``, a table above version 0. ``known_bodies`` are of some payloads
    (``vector_check.row_bodies``). Raises Abandoned if a task gave it
    up, and ValueError if the cuts of its tasks do not fit together.
    """
    table = conflated.flatten()
    is_trade = pc.invert(pc.starts_with(table["key"], REFUSED_PREFIX))
    trades = table.filter(is_trade)
    not_last, others = _split_not_last(table.filter(pc.invert(is_trade)), instruments)
    if pc.any(pc.equal(others["key"], ABANDONED_KEY)).as_py():
        raise Abandoned("the job has lost or given back its lease")
    start, end, read_ms, servers = _cuts(others)
    windows = {
        e: BatchWindow(e) for e in window_ends(start.end_ms, end.end_ms, window_ms)
    }
    counts = {p: PartitionCount() for p in end.partitions}
    letters, odd = _account_others(others, counts)
    trades, not_last = with_ends(trades), with_ends(not_last)
    every = pa.concat_tables([trades, not_last]) if len(not_last) else trades
    bodies = row_bodies(trades["latest.payload"], known_bodies)
    to_fold = odd, not_last if len(not_last) else None
    sums = folded_sums(every, (END, "key"), *to_fold)
    are_newest = _add_trades(trades, bodies, windows, counts, sums)
    names = (END, "partition", "trades", "key")
    for end_ms, partition, number, isin in records(not_last, names):
        counts[partition].not_last += number
        row = Row(isin, NO_VERSION, sums[end_ms, isin], b"")
        windows[end_ms].offer(partition, row)
    shown = turnover.of_newest(trades, bodies, are_newest)
    _account_turnover(counts, table, shown, has_not_last=len(not_last) > 0)
    groups = None
    if instruments.version:
        end = replace(end, instruments=instruments.version)
        own = every.filter(_are_instruments(every))
        unknown = own.filter(pc.is_null(own[PLACE]))
        for partition, number in records(unknown, ("partition", "trades")):
            counts[partition].unknown_instrument += number
        groups = _groups(every, instruments, bodies, are_newest, odd, list(windows))
    parts = list(windows.values()), list(counts.values()), letters
    together: dict[str, bytes] = {}
    if len(windows) > 1:
        of_all_windows = folded_sums(every, ("key",), *to_fold)
        together = {isin: of_it for (isin,), of_it in of_all_windows.items()}
    firsts = {name: every[f"first.{name}"] for name in FIRST}
    folded = {name: every[name] for name in (END, "key", *FOLDED)}
    traded = BatchTrades(pa.table({**folded, **firsts}), odd)
    more = together, traded, _taking_back(others)
    return Batch(start, end, *parts, read_ms, instruments, groups, *more, servers)


def _split_not_last(
    rows: pa.Table, instruments: InstrumentColumns
) -> tuple[pa.Table, pa.Table]:
    """Return trades that do not count for the last price, and all other rows.

    ``key`` of the former becomes their ISIN, and ``place`` that of their instrument.
    """
    are_not_last = pc.starts_with(rows["key"], NOT_LAST_PREFIX)
    if not pc.any(are_not_last).as_py():
        return rows.slice(0, 0), rows
    trades, others = rows.filter(are_not_last), rows.filter(pc.invert(are_not_last))
    isins = pc.utf8_slice_codeunits(trades["key"], len(NOT_LAST_PREFIX))
    trades = with_columns(trades, {"key": isins})
    if PLACE in trades.column_names:
        trades = with_columns(trades, {PLACE: instruments.places_of(isins)})
    return trades, others


def _groups(
    every: pa.Table,
    instruments: InstrumentColumns,
    bodies: Sequence[bytes],
    are_newest: Sequence[bool],
    odd: Sequence[OddAmounts],
    ends_ms: Sequence[int],
) -> GroupRows:
    """Return the groups of rows, of which those of series are none.

    A series' trades are its instrument's, too.
    """
    are_instruments = _are_instruments(every)
    if pc.all(are_instruments).as_py() is False:
        of_trades = zip(bodies, are_newest, are_instruments.to_pylist(), strict=False)
        own = [(body, is_newest) for body, is_newest, is_one in of_trades if is_one]
        bodies, are_newest = [body for body, _ in own], [newest for _, newest in own]
        odd = [amounts for amounts in odd if not is_series(amounts.key)]
        every = every.filter(are_instruments)
    return GroupRows(every, instruments, bodies, are_newest, odd, ends_ms)


def _are_instruments(rows: pa.Table) -> pa.ChunkedArray:
    return pc.invert(pc.match_substring(rows["key"], "@"))


def _cuts(others: pa.Table) -> tuple[Cut, Cut, int, frozenset[str]]:
    cuts = others.filter(pc.equal(others["key"], CUT_KEY))["latest.payload"]
    made = [decode_cuts(payload) for payload in cuts.to_pylist()]
    if not made:
        raise ValueError("a batch has a cut row of each task, this one has none")
    start, end = join_cuts((start, end) for start, end, *_ in made)
    read_ms, servers = zip(*(of_task[2:] for of_task in made), strict=True)
    return start, end, max(read_ms), frozenset().union(*servers)


def _taking_back(others: pa.Table) -> dict[str, frozenset[int]]:
    rows = others.filter(pc.starts_with(others["key"], CANCEL_PREFIX))
    partitions: dict[str, frozenset[int]] = {}
    for key, p in records(rows, ("key", "partition")):
        isin = key.removeprefix(CANCEL_PREFIX)
        partitions[isin] = partitions.get(isin, frozenset()) | {p}
    return partitions


def _account_others(
    others: pa.Table, counts: Mapping[int, PartitionCount]
) -> tuple[list[DeadLetter], list[OddAmounts]]:
    letters, odd = [], []
    latest = (f"latest.{name}" for name in (*ORDER, "reason", "error", "payload"))
    names = ("key", "partition", "trades", "window.end", *latest)
    for key, partition, trades, window_end, *values in records(others, names):
        time_us, size, position, reason, error, packed = values
        count = counts[partition]
        if key == READ_KEY:
            count.read = trades
            count.blanks, count.extra, count.traded["read"] = decode_read(packed)
        elif key.startswith(SUM_PREFIX):
            end_ms = round(window_end.timestamp() * 1000)
            isin = key.rpartition(":")[2]
            odd.append(OddAmounts(end_ms, isin, unpack_amounts(packed)))
        elif reason is not None and reason.startswith(SKIPPED_PREFIX):
            # A trade that corrects another one is counted as a trade.
            if trades:
                count.skipped[reason.removeprefix(SKIPPED_PREFIX)] += trades
        elif reason is not None:
            count.refused[reason] += trades
            if error is None:
                count.unkept += trades
                continue
            place = partition, position, time_us // 1000
            letters.append(DeadLetter(*place, reason, error, *unpack(packed, size)))
    letters.sort(key=lambda letter: (letter.partition, letter.position))
    return letters, odd


def _add_trades(
    trades: pa.Table,
    bodies: Iterable[bytes],
    windows: dict[int, BatchWindow],
    counts: Mapping[int, PartitionCount],
    sums: Mapping[tuple[int, str], bytes],
) -> list[bool]:
    """Add rows to their windows; return which are their instrument's newest."""
    names = (END, "key", "partition", "trades", *(f"latest.{n}" for n in ORDER))
    values = records(trades, names)
    rows = []
    for body, (end_ms, isin, partition, n, *order) in zip(bodies, values, strict=True):
        of_all = sums.get((end_ms, isin), ONE)
        row = Row(isin, encode_version(*order), of_all, body_of(isin, body))
        window = windows[end_ms]
        window.offer(partition, row)
        counts[partition].superseded += n
        rows.append((window, partition, row))
    for window in windows.values():
        for partition, _ in window.rows.values():
            counts[partition].superseded -= 1
    if sum(len(window.rows) for window in windows.values()) == len(rows):
        return [True] * len(rows)
    kept = ((window.rows[row.isin], p, row) for window, p, row in rows)
    return [k[0] == p and k[1].version == row.version for k, p, row in kept]


def _account_turnover(
    counts: Mapping[int, PartitionCount],
    table: pa.Table,
    shown: ByPartition,
    *,
    has_not_last: bool,
) -> None:
    of_all = turnover.of_all(table, "latest.payload")
    not_last: ByPartition = {}
    if has_not_last:
        # Those in no column have a row of their own, whose key has the trade's within.
        are_not_last = pc.match_substring(table["key"], NOT_LAST_PREFIX)
        not_last = turnover.of_all(table.filter(are_not_last), "latest.payload")
    for p, count in counts.items():
        became = {"shown": shown.get(p, NOTHING), "not_last": not_last.get(p, NOTHING)}
        rest = of_all.get(p, NOTHING).minus(became["shown"]).minus(became["not_last"])
        count.traded |= {**became, "superseded": rest}
