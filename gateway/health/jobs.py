"""What Redis says of jobs and of analytics, and which of them are behind. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import orjson

from archive.contract.archive_state import ArchiveState
from gateway.health.log_ends import LogEnds
from throttle.contract.cut import Cut
from throttle.contract.lateness import LATE_AFTER_WINDOWS, is_late
from throttle.contract.ledger import BatchEntry, Ledger
from throttle.contract.tally import QueryTally, TallyBook
from tickthrottle_client.server_memory import ServerMemory

BEHIND_AFTER_MS = 60_000
"""A query may be late by this much beside its batches: Spark starts, and catches up."""

_EVERY_MS = 10_000

USUAL_START_S = 20
"""How long Spark takes to start and warm up."""

LONGEST_START_MS = 3 * USUAL_START_S * 1_000
"""A start that lasts longer is a fault."""

AGAIN_WITHIN_MS = 60_000
"""A job that starts again within this time is at fault."""

LONGEST_GAP_MS = 2_000
"""What counts of a time in which nobody looked: machine asleep, or Redis away."""

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
class QueryState:
    """One query: who runs it, how far it has read, its state and its books.

    ``owner`` is None while nobody runs the analytics job; ``is_stopped``: it was told
    to end. ``window_ms`` is how far the log's clock has come: windows that ended by
    then are closed. ``figures`` are of Spark's state, by their names in Redis, without
    those that are no numbers. ``fault`` says what could not be read.
    """

    product: str
    owner: str | None
    cut: Cut
    window_ms: int
    book: TallyBook | None
    figures: Mapping[str, int] = field(default_factory=dict)
    fault: str | None = None

    @property
    def is_stopped(self) -> bool:
        """Tell whether the query was told to end."""
        return bool(self.figures.get("stopped"))

    @property
    def problems(self) -> list[str]:
        """Say in one sentence each what is wrong with the query's books."""
        if self.fault is not None:
            return [self.fault]
        return [] if self.book is None else self.book.problems()

    @property
    def total(self) -> QueryTally:
        """Return the books of all partitions."""
        total = QueryTally()
        for tally in () if self.book is None else self.book.partitions.values():
            total.add(tally)
        return total

    def is_dead(self) -> bool:
        """Tell whether nobody runs it, though nobody told it to end."""
        return self.owner is None and not self.is_stopped

    def is_behind(self, clock_ms: int) -> bool:
        """Tell whether it runs and should have read more by now."""
        if self.owner is None or self.is_stopped:
            return False
        every_ms = self.figures.get("every_ms", _EVERY_MS)
        allowed_ms = BEHIND_AFTER_MS + LATE_AFTER_WINDOWS * every_ms
        return clock_ms - self.cut.end_ms > allowed_ms


@dataclass(frozen=True, slots=True)
class Upstream:
    """The gateway that is followed, and how far ahead it is; all else is known there.

    ``levels`` is how many gateways lie between this one and Redis.
    """

    url: str
    levels: int
    behind: int
    is_job_starting: bool


@dataclass(frozen=True, slots=True)
class PipelineState:
    """What Redis said at one moment, ``clock_ms`` by its own clock.

    While nothing can be known, ``problem`` says why, there are no jobs, and the clock
    is this machine's. ``candidates`` are the owners of processes that are about to
    publish, by the names of their jobs, ``archives`` what archives say, by their names,
    ``queries`` those of the analytics job. ``memory`` is that of the server, None where
    the gateway may not ask for it. With an ``upstream`` all this is not known here.
    """

    clock_ms: int
    jobs: tuple[JobState, ...]
    log: LogEnds
    problem: str | None = None
    is_redis_down: bool = False
    candidates: Mapping[str, str] = field(default_factory=dict)
    archives: Mapping[str, ArchiveState] = field(default_factory=dict)
    queries: Sequence[QueryState] = ()
    memory: ServerMemory | None = None
    upstream: Upstream | None = None


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


def decode_query(
    product: str,
    lease: bytes | None,
    progress: Mapping[bytes, bytes],
    ledger: Mapping[bytes, bytes],
    state: Mapping[bytes, bytes],
) -> QueryState | None:
    """Decode what Redis holds of one product, None if it was never made.

    What the analytics job would not have written is a ``fault``.
    """
    if not progress:
        return None
    fault, book, cut, window_ms = None, None, Cut(0, (), ()), 0
    try:
        cut = Cut.from_offset(orjson.loads(progress[b"cut"]))
        window_ms = int(progress[b"clock"])
        book = TallyBook.decode(product, ledger)
    except (KeyError, TypeError, ValueError) as error:
        fault = f"analytics of {product}: {error!r}"
    return QueryState(
        product,
        None if lease is None else lease.partition(b" ")[2].decode(errors="replace"),
        cut,
        window_ms,
        book,
        {n.decode(errors="replace"): int(v) for n, v in state.items() if v.isdigit()},
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


def is_retired(job: JobState, jobs: Sequence[JobState]) -> bool:
    """Say whether others have taken a job's place, so that nobody misses it.

    Jobs are retired by starting others under new names, and their cuts stay in Redis.
    A job is retired if the job that is furthest reads another log, or if jobs of its
    own log that are further than it have all of its partitions. Who holds a lease does
    not matter: one that has taken over and died is missed itself, not the one before.
    """
    furthest = max(jobs, key=lambda other: other.cut.end_ms)
    if job.cut.end_ms == furthest.cut.end_ms:
        return False
    covered = {
        partition
        for other in jobs
        if other.log_id == job.log_id and other.cut.end_ms > job.cut.end_ms
        for partition in other.cut.partitions
    }
    return job.log_id != furthest.log_id or covered.issuperset(job.cut.partitions)


def is_behind(
    job: JobState, jobs: Sequence[JobState], clock_ms: int, window_ms: int
) -> bool:
    """Say whether a job that has not been retired has missed windows."""
    age_ms = clock_ms - job.cut.end_ms
    return is_late(age_ms, window_ms) and not is_retired(job, jobs)


def starting(pipeline: PipelineState, window_ms: int) -> list[tuple[str, int | None]]:
    """Return the jobs that publish nothing because they start, and their last cuts.

    A process that stands by while another one publishes is not starting.
    """
    jobs = {job.job: job for job in pipeline.jobs}
    about_to: list[tuple[str, int | None]] = []
    for name, owner in sorted(pipeline.candidates.items()):
        job = jobs.get(name)
        if job is None:
            about_to.append((name, None))
        elif job.owner in (None, owner) and (
            job.owner is None
            or is_behind(job, pipeline.jobs, pipeline.clock_ms, window_ms)
        ):
            about_to.append((name, job.cut.end_ms))
    return about_to


@dataclass(frozen=True, slots=True)
class JobStart:
    """A start as it was seen, by Redis' clock; ``cut_ms`` is what it goes on from.

    ``number`` is 2 or more for one that followed another within a minute.
    """

    owner: str
    cut_ms: int | None
    begun_ms: int
    seen_ms: int
    lasted_ms: int = 0
    number: int = 1

    @property
    def fault(self) -> str | None:
        """Say in a few words why it is a fault, None while it is none."""
        if self.number > 1:
            return f"it has been started {self.number} times in a row"
        if self.lasted_ms > LONGEST_START_MS:
            return f"it has been starting for {self.lasted_ms // 1_000} s"
        return None


class JobStarts:
    """Remembers the starts of jobs, for a minute after they were seen last."""

    def __init__(self) -> None:
        self._starts: dict[str, JobStart] = {}
        self._now: frozenset[str] = frozenset()

    def observe(self, pipeline: PipelineState, window_ms: int) -> None:
        """Take in a look at Redis; one that could tell nothing changes nothing."""
        if pipeline.problem is not None:
            return
        clock_ms, about_to = pipeline.clock_ms, dict(starting(pipeline, window_ms))
        for job, cut_ms in about_to.items():
            owner = pipeline.candidates[job]
            self._starts[job] = self._next(job, owner, cut_ms, clock_ms)
        self._now = frozenset(about_to)
        self._starts = {
            job: start
            for job, start in self._starts.items()
            if clock_ms - start.seen_ms <= AGAIN_WITHIN_MS
        }

    def lasting(self) -> Mapping[str, JobStart]:
        """Return the starts of the newest look, by the names of their jobs."""
        return {job: self._starts[job] for job in self._now if job in self._starts}

    def _next(
        self, job: str, owner: str, cut_ms: int | None, clock_ms: int
    ) -> JobStart:
        before = self._starts.get(job)
        fresh = JobStart(owner, cut_ms, clock_ms, clock_ms)
        if before is None:
            return fresh
        is_unpublished = before.cut_ms == cut_ms
        # Two processes that start together say so in turns.
        if job in self._now or (before.owner == owner and is_unpublished):
            passed_ms = min(max(0, clock_ms - before.seen_ms), LONGEST_GAP_MS)
            lasted_ms = before.lasted_ms + passed_ms
            return replace(
                before,
                owner=owner,
                cut_ms=cut_ms,
                seen_ms=clock_ms,
                lasted_ms=lasted_ms,
            )
        # One that has ended without a window counts from its end.
        before_ms = before.seen_ms if is_unpublished else before.begun_ms
        is_again = clock_ms - before_ms <= AGAIN_WITHIN_MS
        return replace(fresh, number=before.number + 1) if is_again else fresh


def left_behind(
    jobs: Sequence[JobState], clock_ms: int, window_ms: int
) -> list[JobState]:
    """Return the jobs that are behind while others go on.

    Where all stand still no windows come, and that is another fault.
    """
    furthest_ms = max((job.cut.end_ms for job in jobs), default=0)
    return [
        job
        for job in jobs
        if job.cut.end_ms < furthest_ms and is_behind(job, jobs, clock_ms, window_ms)
    ]


def _counted_by_reading(job: JobState, partition: int) -> int | None:
    ledger = job.ledger
    if ledger is None or job.problems or partition not in ledger.upto.partitions:
        return None
    before = ledger.since.count(partition)
    books = ledger.partitions[ledger.upto.partitions.index(partition)]
    return None if before is None else before + books.read + books.blanks


def _decode_stages(stages: Mapping[bytes, bytes]) -> dict[str, int]:
    """Return a batch's times; what is no number of milliseconds is left out."""
    return {
        name.decode(): int(value)
        for name, value in stages.items()
        if name.endswith(b"_ms") and value.isdigit()
    }
