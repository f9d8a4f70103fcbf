"""Reading the trade log for the analytics job: where a batch ends, its partial bars."""

import time
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from ingest.tradelog.contract import Chunk
from throttle.analytics.partials import partial_bars
from throttle.analytics.partials.log_source import CutRange, PartialOptions
from throttle.analytics.partials.partial_bars import NOTE_KEY, TICK_KEY, control_row
from throttle.analytics.partials.taken_back import takings_of
from throttle.contract import cut
from throttle.contract.cut import Cut
from throttle.contract.tally import BatchNote, QueryTally
from throttle.spark.task_log import (
    LONGEST_WAIT_S,
    CheckedPieces,
    ask_patiently,
    entry_rules,
    open_log_reader,
    outages_pass,
    read_patiently,
)
from throttle.standing.look_back import EntryRules
from throttle.window.row_schema import (
    CANCEL_PREFIX,
    REFUSED_PREFIX,
    SKIPPED_PREFIX,
    records,
)

# Partial bars of so many rows are combined before more is read.
_MOST_ROWS = 40_000


def first_cut(options: PartialOptions) -> Cut:
    """Return the cut from which a query starts that has no checkpoint."""
    log, rule = open_log_reader(options.log), options.rule
    clock_ms = ask_patiently(log.clock_ms)
    if options.start == "latest":
        end_ms = rule.boundary_ms(clock_ms)
        return cut.newest_cut(ask_patiently(partial(log.tail, end_ms)), end_ms)
    origin = cut.origin(ask_patiently(log.head), clock_ms, 1)
    return replace(origin, end_ms=rule.boundary_ms(origin.end_ms))


def next_cut(options: PartialOptions, previous: Cut) -> Cut:
    """Return the cut of the batch that follows; ``previous`` while there is none."""
    wait_s = LONGEST_WAIT_S
    with outages_pass():
        log = open_log_reader(options.log)
        clock_ms, batch_ms = log.clock_ms(), options.rule.batch_ms
        most = options.log.max_windows
        end_ms = cut.next_end(previous.end_ms, clock_ms, batch_ms, most)
        if clock_ms >= end_ms:
            tail = log.tail(end_ms)
            if cut.may_be_cut(end_ms, tail):
                return cut.advance(previous, end_ms, tail)
        wait_s = min(max(end_ms - clock_ms, 1) / 1000, LONGEST_WAIT_S)
    time.sleep(wait_s)
    return previous


def read_partials(options: PartialOptions, part: CutRange) -> Iterator[pa.RecordBatch]:
    """Yield what a task makes of its part of the log (``partials_of``)."""
    ranges = cut.between(part.start, part.end, part.partitions)
    chunks = read_patiently(open_log_reader(options.log), ranges)
    yield from partials_of(chunks, options, part, entry_rules(options.log))
    # Until the next batch nobody needs what this one did.
    pa.system_memory_pool().release_unused()


def partials_of(
    chunks: Generator[tuple[int, Chunk]],
    options: PartialOptions,
    part: CutRange,
    rules: EntryRules,
) -> Iterator[pa.RecordBatch]:
    """Yield partial bars (``partial_bars.ARROW_SCHEMA``), a task's note and a tick.

    Where trades are taken back, the log is read again by ``rules``.
    """
    start, end, rule = part.start, part.end, options.rule
    pieces = CheckedPieces(options.log, start.end_ms, end.end_ms, every_trade=True)
    tallies = {p: QueryTally() for p in part.partitions}
    tables: list[pa.Table] = []
    taking: defaultdict[str, set[int]] = defaultdict(set)
    for rows in pieces.read(chunks, is_backlog=True):
        tables.append(_counted(rows, options, tallies))
        if rule.takes_back:
            cancels = rows.filter(pc.starts_with(rows["key"], CANCEL_PREFIX))
            for key, partition in records(cancels, ("key", "partition")):
                taking[key.removeprefix(CANCEL_PREFIX)].add(partition)
        if not rule.is_combined:
            # Later rows cannot change them.
            yield from _ready(tables.pop(), options)
        elif sum(map(len, tables)) >= _MOST_ROWS:
            tables = [partial_bars.combine(tables)]
    if taking:
        takings = ask_patiently(partial(takings_of, taking, rules, rule, part))
        tables.append(takings.partials)
        for p, tally in tallies.items():
            tally.taken_back += takings.done[p]
            tally.not_taken_back += takings.left[p]
    if tables:
        yield from _ready(partial_bars.combine(tables), options)
    for p, tally in tallies.items():
        tally.read, tally.blanks = pieces.entries[p], pieces.blanks[p]
        tally.extra = pieces.extra[p]
        before, after = start.count(p), end.count(p)
        if before is not None and after is not None and after >= before:
            tally.missed = max(0, after - before - tally.read - tally.blanks)
    note = BatchNote(start, end, tallies).encode()
    key = f"{NOTE_KEY}{end.end_ms}:{part.partitions[0]}"
    note_ms, tick_ms = rule.control_ms(end.end_ms)
    yield from control_row(note_ms, key, note).to_batches()
    yield from control_row(tick_ms, TICK_KEY, "").to_batches()


def _ready(table: pa.Table, options: PartialOptions) -> Iterator[pa.RecordBatch]:
    finished = options.rule.finish(partial_bars.to_spark(table))
    yield from finished.combine_chunks().to_batches()


def _counted(
    rows: pa.Table, options: PartialOptions, tallies: dict[int, QueryTally]
) -> pa.Table:
    """Return the partial bars of checked rows; count what became of each trade."""
    others = rows.filter(pc.is_valid(rows["reason"]))
    for partition, reason, number in records(others, ("partition", "reason", "trades")):
        tally = tallies[partition]
        if reason.startswith(SKIPPED_PREFIX):
            tally.skipped[reason.removeprefix(SKIPPED_PREFIX)] += number
        else:
            tally.refused[reason.removeprefix(REFUSED_PREFIX)] += number
    trades, out_of_range = partial_bars.trades_of(rows)
    partials, too_late = options.rule.partials(trades)
    counted = Counter(trades["partition"].to_pylist())
    for p, tally in tallies.items():
        if out_of_range[p]:
            tally.refused[partial_bars.OUT_OF_RANGE] += out_of_range[p]
        tally.counted += counted[p] - too_late[p]
        tally.too_late += too_late[p]
    return partials
