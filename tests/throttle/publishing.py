"""A job that publishes made-up windows, without Spark and without a log."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import reduce
from typing import Any

import orjson
import pyarrow as pa
import redis

from ingest.redis_keys import Keys
from ingest.tradelog.contract import LogKind
from tests.published import read_snapshots
from throttle.contract.cut import Cut
from throttle.contract.dead_letter import DeadLetter
from throttle.contract.ledger import NOTHING, BatchEntry, Ledger, Turnover
from throttle.contract.row_sums import ONE, Amounts, RowSums
from throttle.contract.snapshot import LastValue, Row, WindowSnapshot
from throttle.contract.trade_order import NO_VERSION, decode_version, encode_version
from throttle.lease.lease import Lease, LeaseGrant
from throttle.publish.publisher import Publisher, PublishOptions, PublishOutcome
from throttle.window.batch import Batch, BatchWindow, PartitionCount
from throttle.window.fold_rows import END, OddAmounts
from throttle.window.row_schema import FIRST
from throttle.window.trade_sums import of_amounts
from throttle.window.traded import BatchTrades

W = 2_000
A, B = "KR7005930003", "KR7000660001"
KEYS = Keys("tt")

Refused = Mapping[int, Mapping[str, int]]
"""Numbers of refused trades by partition and reason."""


def make_row(isin: str, time: int, price: str = "10", trades: int = 1) -> Row:
    """Make an instrument's row at a time; it stands for so many trades like its own."""
    body = b'{"isin":"%b","price":%b,"size":1}' % (isin.encode(), price.encode())
    one = Row(isin, encode_version(time, 1, 1), ONE, body)
    return reduce(Row.merge, [one] * trades)


class Job:
    """A job on a log of so many partitions, or on those that are named.

    Each batch begins where the last one ended. Unless told otherwise the log counted
    what the job read, and the positions that hold no entry.
    """

    def __init__(
        self,
        client: redis.Redis,
        name: str = "job",
        partitions: int | Sequence[int] = 1,
        window_log: int = 100,
        log: LogKind = "redis",
    ) -> None:
        numbered = isinstance(partitions, int)
        named = tuple(range(partitions) if numbered else partitions)
        zeros = (0,) * len(named)
        self.name = name
        self.lease = Lease(client, KEYS, name, ttl_ms=60_000)
        self.cut = Cut(W, zeros, zeros, named)
        self._client = client
        self._options = PublishOptions(name, W, window_log, dead_letters=100, log=log)
        self._batch_id = -1
        self.publisher = self.start()

    def start(self, is_rolled_back: bool = False) -> Publisher:
        """Start anew, under the next term, from the stored cut."""
        grant = self.lease.acquire("log", self.cut, is_rolled_back)
        assert isinstance(grant, LeaseGrant)
        self.term, self.cut, self.epoch = grant.term, grant.cut, grant.epoch
        self.publisher = Publisher(self._client, KEYS, self._options, grant.term)
        return self.publisher

    def batch(
        self,
        *windows: Sequence[Row | tuple[int, Row]],
        refused: Refused | None = None,
        letters: Sequence[DeadLetter] = (),
        log_counts: Sequence[int | None] | None = None,
        blanks: Mapping[int, int] | None = None,
        added: Sequence[int] = (),
    ) -> Batch:
        """Make the next batch: the rows of each window, with their partitions if not 0.

        Several rows of one instrument in a window are of several partitions. The log
        has the partitions ``added`` from this batch on.
        """
        partitions = *self.cut.partitions, *added
        counts = {p: PartitionCount() for p in partitions}
        made = []
        for number, rows in enumerate(windows, 1):
            window = BatchWindow(self.cut.end_ms + number * W)
            for one in rows:
                partition, row = (0, one) if isinstance(one, Row) else one
                counts[partition].read += row.trades
                if row.version == NO_VERSION:
                    counts[partition].not_last += row.trades
                else:
                    counts[partition].superseded += row.trades
                if row.isin in window.rows:
                    of_other, other = window.rows[row.isin]
                    window.rows[row.isin] = of_other, other.merge(row)
                    row = row.merge(other)
                window.offer(partition, row)
            for partition, row in window.rows.values():
                counts[partition].superseded -= row.version != NO_VERSION
            made.append(window)
        for window in made:
            for partition, row in window.rows.values():
                _count_turnover(counts[partition], row)
        for partition, reasons in (refused or {}).items():
            counts[partition].refused = Counter(reasons)
            counts[partition].read += sum(reasons.values())
        for partition, number in (blanks or {}).items():
            counts[partition].blanks = number
        known = {p: self.cut.count(p) for p in partitions}
        counted = log_counts or [
            None if before is None else before + counts[p].read + counts[p].blanks
            for p, before in known.items()
        ]
        end_ms, positions = made[-1].end_ms, (made[-1].end_ms << 21,) * len(partitions)
        end = Cut(end_ms, positions, tuple(counted), partitions)
        of_all = made, list(counts.values()), letters
        batch = Batch(self.cut, end, *of_all, traded=_traded_of(made))
        return batch if len(made) == 1 else replace(batch, sums=_sums_of(made))

    def publish(self, *windows: Sequence[Row | tuple[int, Row]], **more: Any) -> Any:
        """Publish the next batch."""
        return self.put(self.batch(*windows, **more))

    def put(self, batch: Batch) -> PublishOutcome:
        """Publish a batch and go on behind it."""
        self._batch_id += 1
        published = self.publisher.publish(batch, self._batch_id)
        self.cut = batch.end
        return published


def _count_turnover(count: PartitionCount, row: Row) -> None:
    """Count what a row stands for, in the partition that it stood in."""
    amounts, own = row.row_sums.amounts, Amounts.of_body(row.body)
    if amounts is None:
        return
    every = Turnover(amounts.volume, amounts.value)
    added = {"read": every, "not_last": every}
    if own is not None:
        shown = Turnover(own.volume, own.value)
        added = {"read": every, "shown": shown, "superseded": every.minus(shown)}
    for name, of_it in added.items():
        count.traded[name] = of_it.plus(*count.traded.get(name, NOTHING))


def _sums_of(windows: Sequence[BatchWindow]) -> dict[str, bytes]:
    """Return the sums of the instruments that are in several windows."""
    folded: dict[str, RowSums] = {}
    for window in windows:
        for _, row in window.rows.values():
            before = folded.get(row.isin)
            sums = row.row_sums
            folded[row.isin] = sums if before is None else sums.fold(before)
    return {isin: sums.encode() for isin, sums in folded.items() if sums.trades > 1}


def _traded_of(windows: Sequence[BatchWindow]) -> BatchTrades:
    """Return what rows made by hand stand for: trades like their own."""
    places, every = [], []
    for window in windows:
        for _, row in window.rows.values():
            order: tuple[Any, ...] = (None,) * len(FIRST)
            if row.version != NO_VERSION:
                order = *decode_version(row.version), _price_of(row)
            places.append((window.end_ms, row.isin, row.trades, *order))
            every.append(row.row_sums.amounts)
    names = END, "key", "trades", *FIRST
    types = pa.int64(), pa.string(), *(pa.int64(),) * 4, pa.string()
    columns = zip(*places, strict=True) if places else ((),) * len(names)
    arrays = map(pa.array, columns, types)
    folded, odd = of_amounts(every)
    table = pa.table({**dict(zip(names, arrays, strict=True)), **folded})
    return BatchTrades(
        table,
        [
            OddAmounts(places[place][0], places[place][1], amounts)
            for place in odd
            if (amounts := every[place]) is not None
        ],
    )


def _price_of(row: Row) -> str:
    return str(Decimal(str(orjson.loads(row.body).get("price", 1))))


def ledger_of(client: redis.Redis, job: str = "job") -> Ledger:
    """Return a job's books."""
    ledger = Ledger.decode(job, client.hgetall(KEYS.ledger(job)))
    assert ledger is not None
    return ledger


def batches_of(client: redis.Redis, job: str = "job") -> list[BatchEntry]:
    """Return what is recorded of a job's batches."""
    return [BatchEntry.decode(*entry) for entry in client.xrange(KEYS.batches(job))]


def last_value(client: redis.Redis, isin: str) -> LastValue:
    """Return the stored last value of an instrument."""
    return LastValue.decode(isin.encode(), client.hget(KEYS.last, isin))


def newest_snapshot(client: redis.Redis) -> WindowSnapshot:
    """Return the newest window of the window log."""
    return read_snapshots(client)[-1]


def dump_all(client: redis.Redis, *besides: str) -> dict[bytes, bytes]:
    """Return every key of the server, byte by byte, but for some."""
    return {
        key: client.dump(key)
        for key in sorted(client.scan_iter())
        if key.decode() not in besides
    }
