"""What was published, compared with the trade log itself after the run."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import redis

from ingest.instrument_table.instrument_store import TableAway
from ingest.instrument_table.open_instrument_store import open_instrument_store
from ingest.process.redact import server_address
from ingest.process.redis_fault import in_words
from ingest.tradelog.contract import LogAway, LogUnusable
from loadtest.judge.following import Follower, Standing
from loadtest.judge.published_run import PublishedRun
from loadtest.results import Audit
from loadtest.system.deployment import Deployment
from throttle.audit.compare import PublishedVersions
from throttle.audit.log_entries import open_log_entries
from throttle.audit.published import InstrumentTables
from throttle.audit.recompute import WindowRule
from throttle.audit.verify import (
    SHOWN,
    EntriesLeft,
    TableAt,
    Verification,
    VerificationReport,
    ledger_problems,
)
from throttle.contract.ledger import BatchEntry, Ledger
from throttle.contract.snapshot import WindowSnapshot
from tickthrottle_client.gc_pause import no_collection
from tickthrottle_client.redis_primary import connect

_BATCHES_WITHIN_S = 10.0


@dataclass(frozen=True, slots=True)
class Audited:
    """An audit, and by offset when the news of each published row entered the log."""

    audit: Audit
    first_news_ms: Mapping[int, Sequence[float]] = field(repr=False)


def audit(deployment: Deployment, follower: Follower, until: Ledger) -> Audited:
    """Audit a deployment from where it was followed to a ledger of the run's end.

    ``follower`` has to have every window up to there.
    """
    ingest = deployment.ingest
    ahead_ms, since = deployment.max_ahead_ms, until.since
    rule = WindowRule(deployment.window_ms, ahead_ms, since=since)
    follower.wait_for_batch(until.upto.end_ms, _BATCHES_WITHIN_S)
    try:
        topic = ingest.topic()
        with connect(ingest.redis_url, socket_timeout=30) as client:
            log = open_log_entries(client, ingest.namespace, topic)
            if log is None:
                return _failed("it is gone")
            start, run = follower.start, follower.run
            # What is read for a window is dropped with it, and nothing is a cycle.
            with no_collection():
                table_at = InstrumentTables(open_instrument_store(ingest)).at
                batches = follower.batches
                return compare(log, start, until, run, batches, rule, table_at)
    except (LogAway, LogUnusable, TableAway) as error:
        return _failed(str(error))
    except redis.RedisError as error:
        return _failed(
            f"redis_url {server_address(ingest.redis_url)}: {in_words(error)}"
        )


def compare(
    log: EntriesLeft,
    start: Standing,
    until: Ledger,
    run: PublishedRun,
    batches: Sequence[BatchEntry],
    rule: WindowRule,
    table_at: TableAt | None = None,
) -> Audited:
    """Compare all windows of a run with the log, and the books with both.

    ``batches`` are those of the run: their cuts decide which trades are in them. Where
    other jobs publish into the stream, a window's content depends on them: then
    nothing is compared, and a note says so. Raises LogAway, LogUnusable and
    redis.RedisError.
    """
    if start.others:
        others = ", ".join(start.others)
        note = f"nothing was compared: {others} publish into the stream, too"
        return Audited(Audit(0, 0, 0, (), notes=(note,)), {})
    end_ms = until.upto.end_ms
    own = [batch for batch in batches if batch.end.end_ms <= end_ms]
    verification = Verification(
        own, log, rule, keeps_first_news=True, table_at=table_at
    )
    before = PublishedVersions(start.last)
    # Later ones were published since the books were read.
    due = (held for held in run.windows if held.end_ms <= end_ms)
    windows = (WindowSnapshot.decode(held.message) for held in due)
    report = verification.run(windows, before, lambda: start.offset + 1)
    report.problems += _unclaimed(start, until, run, own)
    report.problems += ledger_problems(start.ledger, until, report)
    return Audited(_in_words(report), report.first_news_ms)


def _unclaimed(
    start: Standing, until: Ledger, run: PublishedRun, batches: Sequence[BatchEntry]
) -> Iterator[str]:
    """Say which windows are in no batch, and if batches are not from start to end."""
    first = batches[0].start if batches else start.cut
    last = batches[-1].end if batches else start.cut
    if (first.end_ms, last.end_ms) != (start.cut.end_ms, until.upto.end_ms):
        yield (
            f"the batches of the run reach from {first.end_ms} to {last.end_ms}, due "
            f"were those from {start.cut.end_ms} to {until.upto.end_ms}"
        )
    claimed = {b.offset - back for b in batches for back in range(b.windows)}
    for held in run.windows:
        if held.end_ms <= until.upto.end_ms and held.offset not in claimed:
            yield f"window {held.end_ms}: was published, but is in no batch of the run"


def _in_words(report: VerificationReport) -> Audit:
    differences = [*report.problems, *map(str, report.differences)]
    left_out = report.not_comparable.items()
    return Audit(
        trades=report.books.read,
        windows=report.compared,
        instruments=len(report.instruments),
        differences=differences[:SHOWN],
        difference_count=len(report.problems) + report.counts.total(),
        notes=[
            f"windows that were not compared: {count}, {why}" for why, count in left_out
        ],
    )


def _failed(reason: str) -> Audited:
    words = f"the log could not be read again: {reason}"
    return Audited(Audit(0, 0, 0, (words,), 1), {})
