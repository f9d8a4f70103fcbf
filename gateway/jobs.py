"""PURE: what Redis says of the throttle's jobs, how far behind they are, and who is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from gateway.log_ends import LogEnds
from throttle.cut import Cut
from throttle.ledger import BatchEntry, Ledger

BEHIND_WINDOWS = 3
"""So many windows may pass before a job's next cut is missed."""

SLACK_MS = 500
"""How long after its end a window may be published."""

_CUT = b"cut:"


@dataclass(frozen=True, slots=True)
class JobState:
    """One job: who holds its lease, where it goes on, what became of its trades.

    ``owner`` is None while nobody publishes. ``fault`` says what of it could not be
    read.
    """

    job: str
    log_id: str | None
    owner: str | None
    term: int | None
    cut: Cut
    ledger: Ledger | None
    last_batch: BatchEntry | None
    stages: Mapping[str, int]
    fault: str | None = None

    @property
    def problems(self) -> list[str]:
        """Say in one sentence each what is wrong with the job's books."""
        if self.fault is not None:
            return [self.fault]
        return [] if self.ledger is None else self.ledger.problems()


@dataclass(frozen=True, slots=True)
class JobBehind:
    """A job that others have left behind, and since when."""

    job: str
    message: str
    since_ms: int


def job_names(meta: Mapping[bytes, bytes]) -> list[str]:
    """Return the jobs that the hash ``Keys.meta`` knows, in order."""
    return sorted(n.removeprefix(_CUT).decode() for n in meta if n.startswith(_CUT))


def decode_cut(job: str, meta: Mapping[bytes, bytes]) -> Cut:
    """Decode where a job goes on.

    Raises ValueError for anything the throttle would not have written.
    """
    try:
        return Cut.from_offset(orjson.loads(meta[_CUT + job.encode()]))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"cut of {job}: {error!r}") from None


def decode_job(
    job: str,
    meta: Mapping[bytes, bytes],
    lease: bytes | None,
    ledger: Mapping[bytes, bytes],
    batches: Sequence[tuple[bytes, Mapping[bytes, bytes]]],
    stages: Mapping[bytes, bytes],
) -> JobState:
    """Decode what Redis holds of one job.

    Raises ValueError for a cut the throttle would not have written.
    """
    name, fault, books, last = job.encode(), None, None, None
    try:
        books = Ledger.decode(job, ledger)
        last = BatchEntry.decode(*batches[0]) if batches else None
    except ValueError as error:
        fault = f"ledger of {job}: {str(error).removeprefix(f'ledger of {job}: ')}"
    try:
        # Written in one step with the books, so it is what they are of.
        cut = decode_cut(job, meta) if books is None else books.upto
    except ValueError as error:
        raise ValueError(fault or str(error)) from None
    log_id, term = meta.get(b"log:" + name), meta.get(b"term:" + name)
    return JobState(
        job,
        None if log_id is None else log_id.decode(),
        None if lease is None else lease.partition(b" ")[2].decode(),
        None if term is None else int(term),
        cut,
        books,
        last,
        _decode_stages(stages),
        fault,
    )


def imbalances(jobs: Sequence[JobState]) -> list[str]:
    """Return a sentence for everything that does not balance, none if all is well."""
    return [
        text if job.fault is not None else f"ledger of {job.job}: {text}"
        for job in jobs
        for text in job.problems
    ]


def lag(job: JobState, partition: int, log: LogEnds) -> int | None:
    """Return how many trades of a partition a job has not cut yet.

    None where that is not known exactly. In Kafka every position counts. In Redis it
    is the difference of two counts of the log's own; where the cut's is not known,
    because the job was far behind when it cut, the trades that were read take its
    place, as long as the books balance.
    """
    end, position = log.of(partition), job.cut.position(partition)
    if end is None or job.log_id != log.log_id:
        return None
    if log.kind == "kafka":
        return None if end.position is None else max(0, end.position - position)
    if end.added is None or end.left is None:
        return None
    if end.first is not None and end.first > position:
        # What is left was appended behind the cut, all of it.
        return end.left
    counted = job.cut.count(partition)
    if counted is None:
        counted = _counted_by_reading(job, partition)
    behind = None if counted is None else end.added - counted
    return behind if behind is not None and 0 <= behind <= end.left else None


def jobs_behind(
    jobs: Sequence[JobState], clock_ms: int, window_ms: int
) -> list[JobBehind]:
    """Return the jobs that have stopped, or fallen behind, while others go on.

    Where all stand still no windows come, and that is another fault. A job is left
    alone if other jobs go on with all of its partitions, or if it read another log
    than the job that is furthest: it was retired.
    """
    if len(jobs) < 2:
        return []
    newest = max(jobs, key=lambda job: job.cut.end_ms)
    found = []
    for job in jobs:
        age_ms = clock_ms - job.cut.end_ms
        is_late = age_ms > BEHIND_WINDOWS * window_ms + SLACK_MS
        if is_late and _is_missed(job, newest, jobs):
            message = f"job {job.job}: no window for {age_ms / 1_000:.1f} s"
            found.append(JobBehind(job.job, message, job.cut.end_ms + window_ms))
    return found


def _is_missed(job: JobState, newest: JobState, jobs: Sequence[JobState]) -> bool:
    ahead = {
        p
        for other in jobs
        if other.log_id == job.log_id and other.cut.end_ms > job.cut.end_ms
        for p in other.cut.partitions
    }
    if job.log_id != newest.log_id or job.cut.end_ms == newest.cut.end_ms:
        return False
    return not ahead.issuperset(job.cut.partitions)


def _counted_by_reading(job: JobState, partition: int) -> int | None:
    ledger = job.ledger
    if ledger is None or job.problems or partition not in ledger.upto.partitions:
        return None
    before = ledger.since.count(partition)
    books = ledger.partitions[ledger.upto.partitions.index(partition)]
    return None if before is None else before + books.read + books.blanks


def _decode_stages(stages: Mapping[bytes, bytes]) -> dict[str, int]:
    """Return a batch's times; what is no number of milliseconds is left out."""
    found: dict[str, Any] = {}
    for name, value in stages.items():
        text = value.decode(errors="replace")
        if name.endswith(b"_ms") and text.isascii() and text.isdigit():
            found[name.decode()] = int(text)
    return found
