"""Topics to measure with: a backlog with late trades at its end; what a topic holds."""

import re
from typing import NamedTuple

from confluent_kafka import Consumer, TopicPartition
from fill import Log, Stamp, create_pool

from bench.peers.oracle import Oracle, Version
from ingest.sources.simulator import Simulator
from ingest.tradelog.contract import partition_of

LATE = 40
"""Trades that come when their window is long over, each of an issue of its own."""

_FIELDS = re.compile(rb'\{"isin":"(\w{12})","time":(\d+),"seq":(\d+),')
_PIECE = 10_000
_PATIENCE_S = 10.0


class Backlog(NamedTuple):
    """A topic that was filled, and what it holds.

    ``oracle`` leaves out what was appended after the fill: ``late`` trades, and one
    trade for each partition that closes the windows before it.
    """

    log: Log
    oracle: Oracle
    late: frozenset[tuple[str, Version]]


def fill(log: Log, trades: int, recorded: int, issues: int, window_ms: int) -> Backlog:
    """Fill an empty topic of the past with trades, late ones and closing ones."""
    _, last_ms = log.fill(trades, recorded, issues)
    oracle = read_topic(log, window_ms)
    first_ms = min(oracle.newest) - window_ms
    late = _append_last(log, first_ms, last_ms, issues, window_ms)
    return Backlog(log, oracle, late)


def _append_last(
    log: Log, first_ms: int, last_ms: int, issues: int, window_ms: int
) -> frozenset[tuple[str, Version]]:
    """Append late trades and close every partition; return the late ones."""
    more = Simulator(issues=issues + LATE + log.partitions).listing()[issues:]
    isins = [issue.isin for issue in more]
    _, pool = create_pool(log.partitions, LATE, issues, LATE)
    pattern = pool[0]
    trades = [
        pattern._replace(
            partition=partition_of(isin, log.partitions) if n < LATE else n - LATE,
            payload=pattern.payload.replace(pattern.payload[9:21], isin.encode(), 1),
        )
        for n, isin in enumerate(isins)
    ]
    appended_ms = [first_ms] * LATE + [last_ms + window_ms] * log.partitions
    stamps = [Stamp(ms, ms * 1_000, 10**12 + n) for n, ms in enumerate(appended_ms)]
    sender = log.sender()
    sender.send(sender.prepare(trades), stamps)
    sender.wait_for(len(trades))
    return frozenset(
        (isin, (stamp.time_us, stamp.seq))
        for isin, stamp in zip(isins[:LATE], stamps[:LATE], strict=True)
    )


def read_topic(log: Log, window_ms: int) -> Oracle:
    """Read a topic from its first entry to its last. Raises SystemExit if it hangs."""
    oracle = Oracle(window_ms)
    consumer = Consumer(
        {
            "bootstrap.servers": log.address,
            "group.id": "oracle",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    places = [TopicPartition(log.topic, n, 0) for n in range(log.partitions)]
    consumer.assign(places)
    left = sum(consumer.get_watermark_offsets(place)[1] for place in places)
    while left:
        messages = consumer.consume(min(left, _PIECE), timeout=_PATIENCE_S)
        if not messages:
            raise SystemExit(f"{left} entries of {log.topic} do not come")
        for message in messages:
            found = _FIELDS.match(message.value())
            if found is None:
                raise SystemExit(f"{message.value()!r}: not as a trade is written")
            isin, time_us, seq = found.groups()
            version = int(time_us), int(seq)
            oracle.add(message.timestamp()[1], isin.decode(), version)
        left -= len(messages)
    consumer.close()
    return oracle
