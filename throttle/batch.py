"""From the rows of a conflated batch to the windows and counts that are published.

Pure. A batch is every window between two cuts, those without a trade too.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from throttle.columns import row_bodies
from throttle.cut import Cut, window_ends
from throttle.rows import CUT_KEY, READ_KEY, REFUSED_PREFIX, decode_cuts
from throttle.snapshot import Row, encode_version


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A refused trade: where it stood in the log, why, and its original bytes."""

    partition: int
    position: int
    append_ms: int
    reason: str
    error: str
    payload: bytes


@dataclass(slots=True)
class Window:
    """What one window publishes: the latest row of each issue, and its partition."""

    end_ms: int
    rows: dict[str, tuple[int, Row]] = field(default_factory=dict)

    def offer(self, partition: int, row: Row) -> None:
        """Add a partition's latest row of an issue.

        Of several the newest stays, and stands for the trades of all.
        """
        other = self.rows.get(row.isin)
        if other is None:
            self.rows[row.isin] = (partition, row)
            return
        newest = max((partition, row), other, key=lambda one: (one[1].version, one[0]))
        trades = row.trades + other[1].trades
        self.rows[row.isin] = (newest[0], replace(newest[1], trades=trades))

    def of_partition(self, partition: int) -> list[Row]:
        """Return the rows whose trade stood in a partition."""
        return [row for p, row in self.rows.values() if p == partition]


@dataclass(slots=True)
class PartitionCount:
    """What a batch read of one partition, and what of it is no issue's latest.

    ``blanks`` are positions of the log that hold no entry.
    """

    read: int = 0
    blanks: int = 0
    superseded: int = 0
    refused: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch ready to publish: every window between two cuts.

    ``counts[i]`` is of the i-th partition of ``end``.
    """

    start: Cut
    end: Cut
    windows: Sequence[Window]
    counts: Sequence[PartitionCount]
    dead_letters: Sequence[DeadLetter]


def assemble(conflated: pa.Table, window_ms: int) -> Batch:
    """Turn a conflated batch (``conflate.py``) into its windows, oldest first.

    Raises ValueError if the batch does not hold exactly one cut row.
    """
    table = conflated.flatten()
    is_trade = pc.invert(pc.starts_with(table["key"], REFUSED_PREFIX))
    trades, others = table.filter(is_trade), table.filter(pc.invert(is_trade))
    start, end = _cuts(others)
    windows = {e: Window(e) for e in window_ends(start.end_ms, end.end_ms, window_ms)}
    counts = {p: PartitionCount() for p in end.partitions}
    letters = _account_others(others, counts)
    _add_trades(trades, windows, counts)
    return Batch(start, end, list(windows.values()), list(counts.values()), letters)


def _cuts(others: pa.Table) -> tuple[Cut, Cut]:
    cuts = others.filter(pc.equal(others["key"], pa.scalar(CUT_KEY, pa.string())))
    if cuts.num_rows != 1:
        raise ValueError(f"a batch has one cut row, this one {cuts.num_rows}")
    return decode_cuts(cuts["latest.payload"][0].as_py())


def _account_others(
    others: pa.Table, counts: Mapping[int, PartitionCount]
) -> list[DeadLetter]:
    letters = []
    for key, partition, trades, time_us, position, reason, *rest in _lists(
        others,
        ("key", "partition", "trades"),
        ("time", "position", "reason", "error", "payload"),
    ):
        if key == READ_KEY:
            counts[partition].read += trades
            counts[partition].blanks += position
        elif reason is not None:
            counts[partition].refused[reason] += trades
            place = partition, position, time_us // 1000
            letters.append(DeadLetter(*place, reason, *rest))
    return sorted(letters, key=lambda letter: (letter.partition, letter.position))


def _add_trades(
    trades: pa.Table, windows: dict[int, Window], counts: Mapping[int, PartitionCount]
) -> None:
    bodies = row_bodies(trades["latest.payload"])
    ends_us = trades["window.end"].cast(pa.int64()).to_pylist()
    values = _lists(trades, ("key", "partition", "trades"), ("time", "seq", "position"))
    for body, end_us, (isin, partition, n, time_us, seq, position) in zip(
        bodies, ends_us, values, strict=True
    ):
        row = Row(isin, encode_version(time_us, seq, position), n, body)
        windows[end_us // 1000].offer(partition, row)
        counts[partition].superseded += n
    for window in windows.values():
        for partition, _ in window.rows.values():
            counts[partition].superseded -= 1


def _lists(
    table: pa.Table, names: Iterable[str], latest: Iterable[str]
) -> Iterable[tuple[Any, ...]]:
    # Column by column: turning rows into dictionaries takes ten times as long.
    every = [*names, *(f"latest.{name}" for name in latest)]
    return zip(*(table[name].to_pylist() for name in every), strict=True)
