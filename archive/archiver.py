"""The archive: from the window log to where windows are kept, each exactly once.

Where it goes on is never noted down: it is what is stored. Windows are collected for
a while, joined with the issue table, and stored together, in the order in which they
were published.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, TypeVar

import redis
import structlog

from archive.archive_metrics import ArchiveMetrics
from archive.contract.archive_gap import ArchiveGap, find_gaps
from archive.contract.archive_state import MOST_UNKNOWN, ArchiveState, archives_key
from archive.contract.logged_window import LoggedWindow
from archive.contract.segment import Coverage, Segment, check_epoch, day_of
from archive.master.issue_versions import IssueVersions
from archive.parquet.tables import StoredTables, build_tables
from archive.window_source import WindowSource
from ingest.issue_table.issue_store import TableAway
from ingest.process.service_manager import tell_ready
from throttle.contract.redis_keys import Keys
from throttle.lease.lease import Fenced, Keeper, LeaseHeld
from throttle.lease.name_lease import NameLease
from throttle.lease.retry import OutageLog, Stopped, until_done

T = TypeVar("T")

LEASE_MS = 5_000

MOST_PENDING_BYTES = 33_554_432
"""This much is stored at a time at most, however far behind the archive is."""

MOST_PENDING = 1_000

LOOK_S = 1.0
"""How often the window log is looked at, at least."""

_ASK_AGAIN_S = 0.2

log = structlog.get_logger()


class SinkAway(RuntimeError):
    """Nothing can be stored now; it may pass."""


class SinkRefused(RuntimeError):
    """Nothing can be stored where it should be, and no waiting cures that."""


class Sink(Protocol):
    """Where windows are kept. Methods raise OSError or SinkAway for what may pass.

    ``open`` says what is there, whatever was tried before; ``store`` stores a segment
    as a whole or not at all, and one that is there changes nothing; ``tidy`` does one
    thing at a time, and says what.
    """

    def open(self) -> list[Segment]: ...

    def store(self, segment: Segment, tables: StoredTables) -> None: ...

    def tidy(self, newest_ms: int) -> str | None: ...

    def size_bytes(self) -> int: ...

    def close(self) -> None: ...


class Archiver:
    """One archive. ``run`` lives until ``stop`` is set.

    ``at_step`` is told the name of every step once it is done.
    """

    def __init__(
        self,
        client: redis.Redis,
        namespace: str,
        sink: Sink,
        versions: IssueVersions,
        metrics: ArchiveMetrics,
        *,
        name: str,
        destination: str,
        flush_s: float,
        stop: threading.Event,
        at_step: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._client = client
        self._keys = Keys(namespace)
        self._sink = sink
        self._versions = versions
        self._metrics = metrics
        self._name = name
        self._flush_s = flush_s
        self._stop = stop
        self._at_step = at_step
        self._outage = OutageLog()
        self._sink_outage = OutageLog("the archive")
        self._table_outage = OutageLog("the issue table")
        self._lease = NameLease(client, self._keys, f"archive:{name}", LEASE_MS)
        self._source = WindowSource(client, self._keys)
        self._stored, self._seen = Coverage(), Coverage()
        self._last: Segment | None = None
        self._pending: list[LoggedWindow] = []
        self._pending_bytes = 0
        self._due_s = 0.0
        self._state = ArchiveState(
            destination,
            self._lease.owner,
            flush_ms=round(flush_s * 1_000),
            started_ms=time.time_ns() // 1_000_000,
        )

    def run(self) -> None:
        """Store what is published until told to stop; then what was read by then.

        Waits while another process of the name stores, and while a server is away.
        Raises Fenced when another has taken over, redis.RedisError and SinkRefused for
        what no waiting cures.
        """
        with suppress(Stopped):
            term = self._take_lease()
            with Keeper(self._lease, term, LEASE_MS, self._outage) as keeper:
                try:
                    self._until_stored(self._open)
                    log.info("archiving", name=self._name, **self._position())
                    tell_ready()
                    self._work(keeper)
                finally:
                    self._sink.close()
                self._state = replace(self._state, is_stopped=True)
                self._tell()

    def _take_lease(self) -> int:
        is_told = False
        while True:
            got = until_done(self._lease.take, self._stop, self._outage)
            if not isinstance(got, LeaseHeld):
                return got
            if not is_told:
                log.info("another archive stores", name=self._name, owner=got.by)
                # It does what it was started for: to be there when the other is not.
                tell_ready()
                is_told = True
            self._pause(_ASK_AGAIN_S)

    def _open(self) -> None:
        segments = self._sink.open()
        self._stored, self._seen = Coverage(segments), Coverage(segments)
        self._last = max(segments, default=None)
        self._pending.clear()
        self._pending_bytes = 0
        until_done(
            lambda: self._source.begin_after(self._stored), self._stop, self._outage
        )
        found = find_gaps(segments)
        self._state = replace(
            self._state,
            stored_bytes=self._sink.size_bytes(),
            last_gap=found[-1].text if found else None,
            **self._position(),
        )

    def _position(self) -> dict[str, Any]:
        last = self._last
        if last is None:
            return {"epoch": None, "offset": 0, "window": 0}
        return {"epoch": last.epoch, "offset": last.last, "window": last.last_ms}

    def _work(self, keeper: Keeper) -> None:
        while True:
            is_last = self._stop.is_set()
            if keeper.is_fenced:
                raise Fenced("fenced: another archive of this name has taken over")
            has_more = until_done(self._collect, self._stop, self._outage)
            now_s = time.monotonic()
            if self._pending and (has_more or is_last or now_s >= self._due_s):
                self._flush()
            if is_last:
                return
            self._tell()
            if not has_more:
                self._pause(min(LOOK_S, self._flush_s), is_end=False)

    def _collect(self) -> bool:
        """Read on; return whether there may be more than was taken."""
        for window in self._source.read_on(self._seen):
            check_epoch(window.epoch)
            if not self._pending:
                self._due_s = time.monotonic() + self._flush_s
            self._pending.append(window)
            self._seen.add(window.epoch, window.offset, window.offset)
            self._pending_bytes += len(window.message)
            if (
                self._pending_bytes >= MOST_PENDING_BYTES
                or len(self._pending) >= MOST_PENDING
            ):
                return True
        return False

    def _flush(self) -> None:
        self._at_step("read")
        began_s = time.monotonic()
        window_ms = until_done(self._source.window_ms, self._stop, self._outage)
        for run in runs_of(self._pending):
            self._until_stored(partial(self._store, run, window_ms))
        self._pending.clear()
        self._pending_bytes = 0
        self._at_step("stored")
        self._metrics.stored_in(time.monotonic() - began_s)
        while not self._stop.is_set():
            done = self._until_stored(partial(self._sink.tidy, self._state.window))
            if done is None:
                break
            log.info("the archive was tidied", done=done)
        self._state = replace(
            self._state, stored_bytes=self._until_stored(self._sink.size_bytes)
        )

    def _store(self, run: Sequence[LoggedWindow], window_ms: int) -> None:
        segment = segment_of(run)
        if self._stored.has(segment.epoch, segment.last):
            return
        tables = self._build(run, window_ms)
        self._sink.store(segment, tables)
        self._stored.add(segment.epoch, segment.first, segment.last)
        self._note_gaps(segment)
        self._last = segment
        state = self._state
        names = dict.fromkeys((*tables.unknown, *state.unknown))
        self._state = replace(
            state,
            windows=state.windows + len(run),
            rows=state.rows + tables.rows.num_rows,
            unknown_issue=state.unknown_issue + tables.unknown_rows,
            unknown=tuple(names)[:MOST_UNKNOWN],
            **self._position(),
        )

    def _build(self, run: Sequence[LoggedWindow], window_ms: int) -> StoredTables:
        def join() -> StoredTables:
            self._versions.follow()
            versions = [
                self._versions.version_at(window.published_us // 1_000)
                if window.issues is None
                else window.issues
                for window in run
            ]
            return build_tables(run, versions, self._versions.at, window_ms)

        while True:
            try:
                tables = join()
            except TableAway as error:
                self._table_outage.failed("archive", error)
                self._pause(_ASK_AGAIN_S * 5)
            else:
                self._table_outage.answered("archive")
                return tables

    def _note_gaps(self, segment: Segment) -> None:
        before = [] if self._last is None else [self._last]
        gaps: list[ArchiveGap] = find_gaps([*before, segment])
        for gap in gaps:
            if gap.kind == "before" and before:
                continue
            log.warning("a gap in the archive", kind=gap.kind, gap=gap.text)
            missing = gap.windows if gap.kind in ("trimmed", "epoch") else 0
            self._state = replace(
                self._state,
                gaps=self._state.gaps + 1,
                missing_windows=self._state.missing_windows + (missing or 0),
                last_gap=gap.text,
            )

    def _until_stored(self, call: Callable[[], T]) -> T:
        """Call until it succeeds; what may pass is waited for, and told."""
        while True:
            try:
                result = call()
            except (OSError, SinkAway) as error:
                if isinstance(error, redis.RedisError):
                    raise
                self._sink_outage.failed("archive", error)
                problem = str(error) or repr(error)
                self._state = replace(self._state, problem=problem)
                self._tell()
                self._pause(_ASK_AGAIN_S * 5)
            else:
                self._sink_outage.answered("archive")
                if self._state.problem is not None:
                    self._state = replace(self._state, problem=None)
                return result

    def _tell(self) -> None:
        """Say how far the archive is; nothing depends on it."""
        self._state = replace(self._state, updated_ms=time.time_ns() // 1_000_000)
        self._metrics.show(self._state)
        with suppress(redis.RedisError):
            key = archives_key(self._keys.namespace)
            self._client.hset(key, self._name, self._state.encode())
        self._at_step("told")

    def _pause(self, seconds: float, *, is_end: bool = True) -> None:
        """Wait. Raises Stopped when told to stop meanwhile, if that ``is_end``."""
        # Not stop.wait: a signal handler that sets it could find its lock taken.
        until_s = time.monotonic() + seconds
        while (left_s := until_s - time.monotonic()) > 0:
            if self._stop.is_set():
                if is_end:
                    raise Stopped("told to stop")
                return
            time.sleep(min(left_s, 0.1))


def runs_of(windows: Iterable[LoggedWindow]) -> Iterator[list[LoggedWindow]]:
    """Yield windows that follow each other, of one epoch and day."""
    run: list[LoggedWindow] = []
    for window in windows:
        if run and not _is_next(run[-1], window):
            yield run
            run = []
        run.append(window)
    if run:
        yield run


def segment_of(run: Sequence[LoggedWindow]) -> Segment:
    """Return the segment of windows that follow each other."""
    first, last = run[0], run[-1]
    ends = [window.window for window in run]
    offsets = first.offset, last.offset
    published_ms = first.published_us // 1_000
    return Segment(published_ms, *offsets, first.epoch, min(ends), max(ends))


def _is_next(before: LoggedWindow, after: LoggedWindow) -> bool:
    return (
        before.epoch == after.epoch
        and before.offset + 1 == after.offset
        and day_of(before.window) == day_of(after.window)
    )
