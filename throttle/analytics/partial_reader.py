"""Reading the trade log for the analytics job: where a batch ends, its partial bars."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from ingest.tradelog.contract import PIECE_BYTES, Chunk
from throttle.analytics import partial_bars
from throttle.analytics.log_source import CutRange, PartialOptions
from throttle.contract import cut
from throttle.contract.cut import Cut, between
from throttle.contract.tally import BatchNote, QueryTally
from throttle.lease.retry import AWAY, is_transient
from throttle.spark.read_ahead import read_ahead
from throttle.spark.reader import (
    CHECKED_AT_ONCE,
    LONGEST_WAIT_S,
    READ_AHEAD,
    ask_patiently,
    open_log_reader,
    read_patiently,
)
from throttle.window import source_rows
from throttle.window.decoder import find_decoder
from throttle.window.source_rows import REFUSED_PREFIX, SKIPPED_PREFIX

NOTE_KEY = "!note:"
"""Begins the key of a control row that holds a task's note."""

NOTE_MS = 1
"""How long before the clock a note is among bursts, and how long it lasts."""

TICK_KEY = "!tick"
"""Key of a control row that only moves the watermark."""

# Partial bars of so many rows are combined before more is read.
_MOST_ROWS = 40_000


def first_cut(options: PartialOptions) -> Cut:
    """Return the cut from which a query starts that has no checkpoint."""
    log = open_log_reader(options.log)
    clock_ms = ask_patiently(log.clock_ms)
    if options.start == "latest":
        end_ms = _boundary(options, clock_ms)
        return cut.newest_cut(ask_patiently(partial(log.tail, end_ms)), end_ms)
    origin = cut.origin(ask_patiently(log.head), clock_ms, 1)
    return replace(origin, end_ms=_boundary(options, origin.end_ms))


def _boundary(options: PartialOptions, time_ms: int) -> int:
    """Return the last moment not after another one at which a batch may end."""
    return time_ms - (time_ms - options.close_after_ms) % options.batch_ms


def next_cut(options: PartialOptions, previous: Cut) -> Cut:
    """Return the cut of the batch that follows; ``previous`` while there is none."""
    wait_s = LONGEST_WAIT_S
    try:
        log = open_log_reader(options.log)
        clock_ms, batch_ms = log.clock_ms(), options.batch_ms
        most = options.log.max_windows
        end_ms = cut.next_end(previous.end_ms, clock_ms, batch_ms, most)
        if clock_ms >= end_ms:
            tail = log.tail(end_ms)
            if cut.may_be_cut(end_ms, tail):
                return cut.advance(previous, end_ms, tail)
        wait_s = min(max(end_ms - clock_ms, 1) / 1000, LONGEST_WAIT_S)
    except AWAY as error:
        if not is_transient(error):
            raise
    time.sleep(wait_s)
    return previous


def read_partials(options: PartialOptions, part: CutRange) -> Iterator[pa.RecordBatch]:
    """Yield partial bars (``partial_bars.ARROW_SCHEMA``), a tick and a task's note."""
    rows = _Partials(options, part)
    chunks = read_patiently(
        open_log_reader(options.log), between(part.start, part.end, part.partitions)
    )
    ready: list[tuple[int, Chunk]] = []
    with closing(read_ahead(chunks, READ_AHEAD)) as taken:
        for p, chunk in taken:
            ready.append((p, chunk))
            if (
                sum(len(one) for _, one in ready) >= CHECKED_AT_ONCE
                or sum(one.payloads.nbytes for _, one in ready) >= PIECE_BYTES
            ):
                rows.add(ready)
                ready = []
                yield from rows.single()
    if ready:
        rows.add(ready)
    yield from rows.take()


class _Partials:
    """What one task has read so far of a batch."""

    def __init__(self, options: PartialOptions, part: CutRange) -> None:
        self._options = options
        self._part = part
        self._decode = find_decoder(options.log.decoder)
        self._tallies = {p: QueryTally() for p in part.partitions}
        self._names: set[str] = set()
        self._tables: list[pa.Table] = []

    def add(self, chunks: Sequence[tuple[int, Chunk]]) -> None:
        """Check chunks, count what they hold and combine their trades."""
        options, part = self._options, self._part
        entries = Counter[int]()
        for p, chunk in chunks:
            entries[p] += len(chunk)
            self._tallies[p].read += len(chunk)
            self._tallies[p].blanks += chunk.blanks
        rows = source_rows.trade_rows(
            *source_rows.joined(chunks),
            part.start.end_ms,
            part.end.end_ms,
            options.log.max_ahead_ms,
            self._decode,
            options.log.max_entry_bytes,
            every_trade=True,
        )
        if self._decode is not None:
            for p, extra in source_rows.extra_trades(rows, entries).items():
                self._tallies[p].extra += extra
            rows = source_rows.bound_names(rows, self._names)
        self._count_others(rows)
        self._count_trades(rows)

    def _count_others(self, rows: pa.Table) -> None:
        others = rows.filter(pc.is_valid(rows["reason"]))
        if not len(others):
            return
        names = ("partition", "reason", "trades")
        columns = (others[name].to_pylist() for name in names)
        for partition, reason, trades in zip(*columns, strict=True):
            tally = self._tallies[partition]
            if reason.startswith(SKIPPED_PREFIX):
                tally.skipped[reason.removeprefix(SKIPPED_PREFIX)] += trades
            else:
                tally.refused[reason.removeprefix(REFUSED_PREFIX)] += trades

    def _count_trades(self, rows: pa.Table) -> None:
        options = self._options
        trades, out_of_range = partial_bars.trades_of(rows)
        for p, number in out_of_range.items():
            self._tallies[p].refused[partial_bars.OUT_OF_RANGE] += number
        for p, number in Counter(trades["partition"].to_pylist()).items():
            self._tallies[p].counted += number
        after_ms = options.close_after_ms
        if options.product == "movers":
            partials, too_late = partial_bars.pane_partials(
                trades, options.batch_ms, options.span_ms, after_ms
            )
        elif options.product == "bursts":
            partials, too_late = partial_bars.burst_partials(
                trades, options.batch_ms, options.gap_ms, after_ms
            )
        elif options.product == "moves":
            partials, too_late = partial_bars.single_trades(
                trades, options.batch_ms, after_ms
            )
        else:
            partials, too_late = partial_bars.bar_partials(
                trades, options.bars_ms, after_ms, options.lateness_ms
            )
        for p, number in too_late.items():
            self._tallies[p].counted -= number
            self._tallies[p].too_late += number
        self._tables.append(partials)
        if options.product != "moves" and sum(map(len, self._tables)) >= _MOST_ROWS:
            self._tables = [partial_bars.combine(self._tables)]

    def single(self) -> Iterator[pa.RecordBatch]:
        """Yield what is not combined with anything that is still to be read."""
        if self._options.product == "moves":
            for table in self._tables:
                yield from partial_bars.to_spark(table).combine_chunks().to_batches()
            self._tables = []

    def take(self) -> Iterator[pa.RecordBatch]:
        """Yield all partial bars, a tick and the note."""
        yield from self.single()
        if self._tables:
            table = partial_bars.to_spark(partial_bars.combine(self._tables))
            if self._options.product == "bursts":
                table = partial_bars.at_first_trade(table)
            yield from table.combine_chunks().to_batches()
        part, options = self._part, self._options
        clock_ms = part.end.end_ms - options.close_after_ms
        for p, tally in self._tallies.items():
            before, after = part.start.count(p), part.end.count(p)
            if before is not None and after is not None and after >= before:
                tally.missed = max(0, after - before - tally.read - tally.blanks)
        note = BatchNote(part.start, part.end, self._tallies).encode()
        key = f"{NOTE_KEY}{part.end.end_ms}:{part.partitions[0]}"
        note_ms = tick_ms = clock_ms
        if options.product == "bursts":
            # Among bursts it is one that has just ended; none of their trades is later
            # than the batch's end, so the watermark is the clock whatever they are.
            note_ms, tick_ms = clock_ms - NOTE_MS, part.end.end_ms
        yield from partial_bars.control_row(note_ms, key, note).to_batches()
        yield from partial_bars.control_row(tick_ms, TICK_KEY, "").to_batches()
