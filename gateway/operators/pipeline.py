"""The pipeline as one object for operators, made of what was found out. Pure."""

from collections.abc import Sequence
from dataclasses import fields

from gateway.health.jobs import JobState, PipelineState, QueryState, is_retired, lag
from gateway.health.log_ends import LogEnds, PartitionEnd
from gateway.operators.operators_schemas import (
    ArchiveAnswer,
    BatchAnswer,
    BooksAnswer,
    FanoutAnswer,
    FeedAnswer,
    JobAnswer,
    LogAnswer,
    LogPartition,
    PartitionAnswer,
    QueryAnswer,
    StreamAnswer,
    WorkerAnswer,
)
from gateway.protocol.market_instruments import MarketInstruments
from gateway.stream.board import Board
from gateway.stream.window_timings import WindowTiming
from gateway.workers.worker_report import WorkerReport, add_states
from ingest.instrument_table.known_instruments import Instruments
from ingest.tradelog.contract import LogKind
from throttle.contract.ledger import BatchEntry, Books

_OF_ARCHIVE = {field.name for field in fields(ArchiveAnswer)} - {"name", "is_behind"}
_OF_SPARK = ("every_ms", "rows", "bytes", "update_ms", "commit_ms", "dropped")


def feed_answer(log: LogEnds, clock_ms: int) -> FeedAnswer:
    """Say when a trade was appended last."""
    last_ms = log.last_append_ms
    quiet_ms = None if last_ms is None else max(0, clock_ms - last_ms)
    return FeedAnswer(last_ms, quiet_ms)


def log_answer(log: LogEnds) -> LogAnswer:
    """Show where the log ends."""
    partitions = [
        LogPartition(p, _position(end.position), end.append_ms, _added(end, log.kind))
        for p, end in sorted((log.partitions or {}).items())
    ]
    return LogAnswer(log.kind, log.log_id, partitions, log.problem)


def _added(end: PartitionEnd, kind: LogKind) -> int | None:
    # Positions of Kafka are dense: an entry for each, or a marker now and then.
    return end.position if kind == "kafka" else end.added


def job_answer(
    job: JobState, jobs: Sequence[JobState], log: LogEnds, clock_ms: int
) -> JobAnswer:
    """Show one of the jobs: how far it is, and what became of its trades."""
    ledger, batch = job.ledger, job.last_batch
    counted = [] if ledger is None else ledger.log
    counts = [count for count in counted if count is not None]
    total = Books() if ledger is None else ledger.total
    total_log = sum(counts) if len(counts) == len(counted) else None
    return JobAnswer(
        job=job.job,
        is_active=job.owner is not None,
        is_retired=is_retired(job, jobs),
        owner=job.owner,
        term=job.term,
        cut_ms=job.cut.end_ms,
        age_ms=clock_ms - job.cut.end_ms,
        batches=0 if ledger is None else ledger.batches,
        windows=0 if ledger is None else ledger.windows,
        balanced=not job.problems,
        problems=job.problems,
        total=BooksAnswer(
            **total.to_object(), log=total_log, imbalance=imbalance(total, total_log)
        ),
        partitions=_partitions(job, log),
        last_batch=None if batch is None else _batch_answer(batch),
        stages=dict(job.stages) or None,
    )


def imbalance(books: Books, counted: int | None) -> str | None:
    """Say in a few words by how much books are off, None if they balance.

    The log may have been asked at an older window: then it has ``counted`` fewer.
    """
    missing = books.unaccounted
    if missing:
        return f"{missing} unaccounted" if missing > 0 else f"{-missing} too many"
    if counted is not None and counted > books.read:
        return f"{counted - books.read} not read"
    return None


def stream_answer(
    board: Board, instruments: Instruments, clock_ms: int, silence: str | None
) -> StreamAnswer:
    """Show the stream; ``silence`` says for how long no window has come."""
    here = board.position
    return StreamAnswer(
        here.epoch,
        here.offset,
        here.window,
        None if here.window is None else clock_ms - here.window,
        board.window_ms,
        len(board),
        len(board.unlisted(instruments)),
        len(board.groups),
        instruments.market if isinstance(instruments, MarketInstruments) else None,
        silence is None,
        silence,
    )


def archive_answers(pipeline: PipelineState, window_ms: int) -> list[ArchiveAnswer]:
    """Show the archives, by their names."""
    newest_ms = max((job.cut.end_ms for job in pipeline.jobs), default=0)
    return [
        ArchiveAnswer(
            name=name,
            is_behind=state.is_behind(newest_ms, window_ms),
            **{field: getattr(state, field) for field in _OF_ARCHIVE},
        )
        for name, state in pipeline.archives.items()
    ]


def query_answer(query: QueryState, clock_ms: int) -> QueryAnswer:
    """Show a query of the analytics job: how far it is, its books, Spark's state."""
    total, figures = query.total, query.figures
    return QueryAnswer(
        product=query.product,
        owner=query.owner,
        is_stopped=query.is_stopped,
        is_dead=query.is_dead(),
        is_behind=query.is_behind(clock_ms),
        cut_ms=query.cut.end_ms,
        age_ms=clock_ms - query.cut.end_ms,
        window=query.window_ms,
        batches=0 if query.book is None else query.book.batches,
        trades=total.counted,
        too_late=total.too_late,
        refused=total.refused.total(),
        missed=total.missed,
        problems=query.problems,
        **{name: figures.get(name) for name in _OF_SPARK},
    )


def fanout_answer(
    reports: Sequence[WorkerReport], timings: Sequence[WindowTiming]
) -> FanoutAnswer:
    """Show how the clients are served; ``timings`` are of all workers, oldest first."""
    finished = (t.fanout_lag_ms for t in reversed(timings))
    return FanoutAnswer(
        sum(report.clients for report in reports),
        add_states(reports),
        timings[-1].publish_lag_ms if timings else None,
        next((lag_ms for lag_ms in finished if lag_ms is not None), None),
        sum(report.rss_bytes for report in reports),
        max(report.loop_lag_ms for report in reports),
        [
            WorkerAnswer(r.worker, r.pid, r.clients, r.rss_bytes, r.loop_lag_ms)
            for r in reports
        ],
    )


def _partitions(job: JobState, log: LogEnds) -> list[PartitionAnswer]:
    ledger = job.ledger
    partitions = job.cut.partitions
    accounts = [Books()] * len(partitions) if ledger is None else ledger.partitions
    counts = [None] * len(partitions) if ledger is None else ledger.log
    answers = []
    for p, books, counted in zip(partitions, accounts, counts, strict=True):
        end = log.of(p) if job.log_id == log.log_id else None
        answers.append(
            PartitionAnswer(
                **books.to_object(),
                log=counted,
                imbalance=imbalance(books, counted),
                partition=p,
                position=str(job.cut.position(p)),
                end=None if end is None else _position(end.position),
                lag=lag(job, p, log),
            )
        )
    return answers


def _batch_answer(batch: BatchEntry) -> BatchAnswer:
    total = batch.total
    return BatchAnswer(
        batch.batch,
        batch.offset,
        batch.windows,
        total.read,
        total.published,
        total.superseded,
        total.stale,
        total.not_last,
        sum(total.refused.values()),
    )


def _position(position: int | None) -> str | None:
    # As text: JavaScript's numbers end at 2^53. Below 0 is before anything.
    return None if position is None or position < 0 else str(position)
