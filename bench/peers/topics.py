"""Topics to measure with: a backlog with late trades at its end; what a topic holds."""

from collections.abc import Iterator
from typing import NamedTuple

from fill import Log, Stamp, create_pool

from bench.peers.comparison import Rows, Version
from bench.peers.messages import WINDOW_MS
from ingest.kafka.address import KafkaTopic
from ingest.kafka.kafka_log_reader import KafkaLogReader
from ingest.sources.simulator import Simulator
from ingest.tradelog.contract import partition_of
from throttle.audit.recompute import Entry, WindowRule, entries_of, recompute
from tickthrottle_client.kafka_client import open_topic

LATE = 40
"""Trades that come when their window is long over, each of an instrument of its own."""

NO_LIMIT_MS = 10**15
"""No stamp is beyond it: a topic is one batch, and no trade ahead of its window."""


class Expected(NamedTuple):
    """The rows that windows must hold, and how many entries there are."""

    newest: Rows
    entries: int


class Backlog(NamedTuple):
    """A topic that was filled, and what it holds.

    ``expected`` leaves out what was appended after the fill: ``late`` trades, and one
    trade for each partition that closes the windows before it.
    """

    log: Log
    expected: Expected
    late: frozenset[tuple[str, Version]]


def fill(log: Log, trades: int, recorded: int, instruments: int) -> Backlog:
    """Fill an empty topic of the past with trades, late ones and closing ones."""
    _, last_ms = log.fill(trades, recorded, instruments)
    expected = read_topic(log)
    first_ms = min(expected.newest) - WINDOW_MS
    late = _append_last(log, first_ms, last_ms, instruments)
    return Backlog(log, expected, late)


def _append_last(
    log: Log, first_ms: int, last_ms: int, instruments: int
) -> frozenset[tuple[str, Version]]:
    """Append late trades and close every partition; return the late ones."""
    more = Simulator(instruments=instruments + LATE + log.partitions).listing()[
        instruments:
    ]
    isins = [instrument.isin for instrument in more]
    _, pool = create_pool(log.partitions, LATE, instruments, LATE)
    pattern = pool[0]
    trades = [
        pattern._replace(
            partition=partition_of(isin, log.partitions) if n < LATE else n - LATE,
            payload=pattern.payload.replace(pattern.payload[9:21], isin.encode(), 1),
        )
        for n, isin in enumerate(isins)
    ]
    appended_ms = [first_ms] * LATE + [last_ms + WINDOW_MS] * log.partitions
    stamps = [Stamp(ms, ms * 1_000, 10**12 + n) for n, ms in enumerate(appended_ms)]
    sender = log.sender()
    sender.send(sender.prepare(trades), stamps)
    sender.wait_for(len(trades))
    return frozenset(
        (isin, (stamp.time_us, stamp.seq))
        for isin, stamp in zip(isins[:LATE], stamps[:LATE], strict=True)
    )


def read_topic(log: Log) -> Expected:
    """Read a topic from its first entry to its last. Raises LogAway.

    What its windows must hold is computed by the product's own audit.
    """
    rule = WindowRule(WINDOW_MS, NO_LIMIT_MS)
    batch = recompute(_entries(log), 0, NO_LIMIT_MS, rule)
    newest = {
        end_ms: {
            isin: max(order for order, _ in row.arrivals)[:2]
            for isin, row in rows.items()
        }
        for end_ms, rows in batch.windows.items()
    }
    return Expected(newest, batch.read.total())


def _entries(log: Log) -> Iterator[Entry]:
    topic = KafkaTopic(log.address, log.topic)
    reader = KafkaLogReader(topic, open_topic(topic))
    for partition, chunk in reader.read(reader.bounds()):
        yield from entries_of(partition, chunk)
