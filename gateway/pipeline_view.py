"""PURE: the pipeline as one object for operators, made of what was found out."""

from collections.abc import Mapping

from gateway.board import Board
from gateway.client_list import State
from gateway.jobs import JobState, lag
from gateway.log_ends import LogEnds
from gateway.ops_answers import (
    Account,
    BatchAnswer,
    FanoutAnswer,
    FeedAnswer,
    JobAnswer,
    LogAnswer,
    LogPartition,
    PartitionAccount,
    StreamAnswer,
)
from gateway.pulse import Pulse
from throttle.ledger import BatchEntry, Books


def feed_answer(log: LogEnds, clock_ms: int) -> FeedAnswer:
    """Say when a trade was appended last."""
    last_ms = log.last_append_ms
    quiet_ms = None if last_ms is None else max(0, clock_ms - last_ms)
    return FeedAnswer(last_ms, quiet_ms)


def log_answer(log: LogEnds) -> LogAnswer:
    """Show where the log ends."""
    partitions = [
        LogPartition(p, _position(end.position), end.append_ms)
        for p, end in sorted((log.partitions or {}).items())
    ]
    return LogAnswer(log.kind, log.log_id, partitions, log.problem)


def job_answer(job: JobState, log: LogEnds, clock_ms: int) -> JobAnswer:
    """Show a job: how far it is, and what became of its trades."""
    ledger, batch = job.ledger, job.last_batch
    counted = [] if ledger is None else ledger.log
    known = [count for count in counted if count is not None]
    total = Books() if ledger is None else ledger.total
    return JobAnswer(
        job=job.job,
        is_active=job.owner is not None,
        owner=job.owner,
        term=job.term,
        cut_ms=job.cut.end_ms,
        age_ms=clock_ms - job.cut.end_ms,
        batches=0 if ledger is None else ledger.batches,
        windows=0 if ledger is None else ledger.windows,
        balanced=not job.problems,
        problems=job.problems,
        total=Account(
            **total.to_object(), log=sum(known) if len(known) == len(counted) else None
        ),
        partitions=_partitions(job, log),
        last_batch=None if batch is None else _batch_answer(batch),
        stages=dict(job.stages) or None,
    )


def stream_answer(board: Board, clock_ms: int, silence: str | None) -> StreamAnswer:
    """Show the stream; ``silence`` says for how long no window has come."""
    here = board.position
    return StreamAnswer(
        here.epoch,
        here.offset,
        here.window,
        None if here.window is None else clock_ms - here.window,
        board.window_ms,
        len(board),
        silence is None,
        silence,
    )


def fanout_answer(
    states: Mapping[State, int], pulse: Pulse, rss_bytes: int, loop_lag_s: float
) -> FanoutAnswer:
    """Show how the clients are served."""
    last = pulse.last
    return FanoutAnswer(
        sum(states.values()),
        states,
        None if last is None else last.publish_lag_ms,
        pulse.fanout_lag_ms,
        rss_bytes,
        round(loop_lag_s * 1_000),
    )


def _partitions(job: JobState, log: LogEnds) -> list[PartitionAccount]:
    ledger = job.ledger
    every = job.cut.partitions
    books = [Books()] * len(every) if ledger is None else ledger.partitions
    counts = [None] * len(every) if ledger is None else ledger.log
    found = []
    for p, one, counted in zip(every, books, counts, strict=True):
        end = log.of(p) if job.log_id == log.log_id else None
        found.append(
            PartitionAccount(
                **one.to_object(),
                log=counted,
                partition=p,
                position=str(job.cut.position(p)),
                end=None if end is None else _position(end.position),
                lag=lag(job, p, log),
            )
        )
    return found


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
        sum(total.refused.values()),
    )


def _position(position: int | None) -> str | None:
    # As text: JavaScript's numbers end at 2^53. Below 0 is before anything.
    return None if position is None or position < 0 else str(position)
