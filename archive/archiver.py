"""The archive: from the window log to where windows are kept, each exactly once.

Where it goes on is never noted down: it is what is stored. Windows are collected for
a while, joined with the instrument table, and stored together, in the order in which
they were published. Bars come from the bar log in the same way, if there is one, and
trading statuses from theirs.
"""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import redis
import structlog

from archive.archive_metrics import ArchiveMetrics
from archive.contract.archive_gap import ArchiveGap, find_gaps
from archive.contract.archive_state import (
    MOST_DAMAGED,
    MOST_UNKNOWN,
    ArchiveState,
)
from archive.contract.logged import (
    Logged,
    LoggedBars,
    LoggedStatus,
    LoggedWindow,
    runs_of,
    segment_of,
)
from archive.contract.segment import Product
from archive.instrument_versions import InstrumentVersions
from archive.log_copy import LogCopy
from archive.parquet.bar_table import StoredBars, build_bars
from archive.parquet.status_table import StoredStatuses, build_statuses
from archive.parquet.tables import StoredTables, build_tables
from archive.storing.answer_watch import watched
from archive.storing.archive_sink import Sink
from archive.storing.tidier import Tidier, give_back
from ingest.instrument_table.instrument_store import TableAway
from ingest.process.service_manager import tell_ready
from ingest.redis_keys import AnalyticsKeys, Keys, OtherKeys, StatusKeys
from throttle.lease.lease import Fenced, Keeper, LeaseHeld, NameLease
from throttle.lease.retry import OutageLog, Stopped, pause, until_done
from tickthrottle_client.log_v1 import LogAway

T = TypeVar("T")

LEASE_MS = 5_000

LOOK_S = 1.0
"""How often the logs are looked at, at least."""

SILENT_S = 10.0
"""Where windows are stored may take this long to answer before that is a problem."""

_ASK_AGAIN_S = 0.2

_COUNTS: dict[Product, tuple[str, str, str]] = {
    "windows": ("windows", "gaps", "missing_windows"),
    "bars": ("bars", "bar_gaps", "missing_bar_batches"),
    "statuses": ("statuses", "status_gaps", "missing_statuses"),
}
"""What is counted of each: stored, gaps, and entries that are missing for good."""

log = structlog.get_logger()


class Archiver:
    """One archive. ``run`` lives until ``stop`` is set.

    ``at_step`` is told the name of every step once it is done.
    """

    def __init__(
        self,
        client: redis.Redis,
        namespace: str,
        sink: Sink,
        versions: InstrumentVersions,
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
        self._table_outage = OutageLog("the instrument table")
        self._lease = NameLease(client, self._keys, f"archive:{name}", LEASE_MS)
        bar_log = AnalyticsKeys(namespace).bar_log
        self._windows = LogCopy(
            client, self._keys.windows, "windows", LoggedWindow.of_entry
        )
        self._bars = LogCopy(client, bar_log, "bars", LoggedBars.of_entry)
        self._statuses = LogCopy(
            client, StatusKeys(namespace).stream, "statuses", LoggedStatus.of_entry
        )
        self._copies: Sequence[LogCopy[Any]] = ()
        self._joined_with: int | None = None
        self._due_s = 0.0
        self._term = 0
        # Set by the tidier: something that was stored is not there any more.
        self._is_reduced = threading.Event()
        self._tidier = Tidier(sink, lambda: self._state.window, self._is_reduced.set)
        self._state = ArchiveState(
            destination,
            self._lease.owner,
            flush_ms=round(flush_s * 1_000),
            started_ms=time.time_ns() // 1_000_000,
        )

    def run(self) -> None:
        """Store what is published until told to stop; then what was read by then.

        Waits while another process of the name stores, and while a server is away.
        Raises Fenced when another has taken over, redis.RedisError and LogUnusable for
        what no waiting cures.
        """
        with suppress(Stopped):
            self._term = self._take_lease()
            with Keeper(self._lease, self._term, LEASE_MS, self._outage):
                try:
                    self._until_stored(self._open)
                    log.info("archiving", name=self._name, **self._position())
                    tell_ready()
                    with self._tidier:
                        self._tidier.ask()
                        self._work()
                finally:
                    self._sink.close()
                self._check_fence()
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
            pause(_ASK_AGAIN_S, self._stop)

    def _open(self) -> None:
        self._in_sink(self._sink.open)
        stored = self._in_sink(self._sink.stored)
        copies = self._windows, self._bars, self._statuses
        self._copies = [copy for copy in copies if copy.product in stored]
        is_whole = not self._in_sink(self._sink.damaged)
        gaps: list[ArchiveGap] = []
        for copy in self._copies:
            segments = stored[copy.product]
            copy.begin(segments)
            # Killed before it had stored again what was set aside, it does so now.
            if is_whole:
                until_done(copy.find_place, self._stop, self._outage)
            gaps += find_gaps(segments, copy.product)
        self._state = replace(
            self._state,
            last_gap=gaps[-1].text if gaps else None,
            **self._contents(),
            **self._position(),
        )

    def _begin_anew(self) -> None:
        """Store again what was set aside, as far as the logs still have it."""
        stored = self._in_sink(self._sink.stored)
        for copy in self._copies:
            copy.begin(stored[copy.product])
        self._state = replace(self._state, **self._contents(), **self._position())

    def _check_fence(self) -> None:
        """Raise Fenced if another archive of the name has taken over meanwhile."""
        renew = partial(self._lease.renew, self._term)
        if not until_done(renew, self._stop, self._outage):
            raise Fenced("fenced: another archive of this name has taken over")

    def _contents(self) -> dict[str, Any]:
        damaged = self._in_sink(self._sink.damaged)
        return {
            "stored_bytes": self._in_sink(self._sink.size_bytes),
            "damaged_segments": len(damaged),
            "damaged": tuple(damaged[-MOST_DAMAGED:]),
        }

    def _position(self) -> dict[str, Any]:
        windows, bars, statuses = (
            copy.last for copy in (self._windows, self._bars, self._statuses)
        )
        return {
            "epoch": windows and windows.epoch,
            "offset": windows.last if windows else 0,
            "window": windows.last_ms if windows else 0,
            "bar_epoch": bars and bars.epoch,
            "bar_number": bars.last if bars else 0,
            "status_epoch": statuses and statuses.epoch,
            "status_number": statuses.last if statuses else 0,
        }

    def _work(self) -> None:
        while True:
            is_last = self._stop.is_set()
            self._check_fence()
            if self._tidier.death is not None:
                raise self._tidier.death
            if self._is_reduced.is_set():
                self._is_reduced.clear()
                self._until_stored(self._begin_anew)
            has_more = self._collect()
            now_s = time.monotonic()
            is_due = has_more or is_last or now_s >= self._due_s
            if self._has_pending and is_due:
                self._flush()
            if is_last:
                return
            self._tell()
            if not has_more:
                with suppress(Stopped):
                    pause(min(LOOK_S, self._flush_s), self._stop)

    @property
    def _has_pending(self) -> bool:
        return any(copy.pending for copy in self._copies)

    def _collect(self) -> bool:
        """Read on in each log; return whether there may be more than was taken."""
        was_empty, has_more = not self._has_pending, False
        for copy in self._copies:
            has_more |= until_done(copy.collect, self._stop, self._outage)
        if was_empty and self._has_pending:
            self._due_s = time.monotonic() + self._flush_s
        return has_more

    def _flush(self) -> None:
        self._at_step("read")
        began_s = time.monotonic()
        builds: dict[Product, Callable[[Any], Any]] = {
            "windows": self._build,
            "bars": build_bars,
            "statuses": build_statuses,
        }
        for copy in self._copies:
            for run in runs_of(copy.pending):
                store = partial(self._store, copy, builds[copy.product], run)
                self._until_stored(store)
        for copy in self._copies:
            copy.clear()
        give_back()
        self._at_step("stored")
        self._metrics.stored_in(time.monotonic() - began_s)
        self._tidier.ask()
        contents = self._until_stored(self._contents)
        self._state = replace(self._state, **contents)

    def _window_ms(self) -> int:
        """Return how long windows are. Raises LogAway where the stream does not say so.

        That is while Redis is emptied or restored: what is stored stays as it is, so it
        is not guessed.
        """
        meta = self._keys.meta
        ask = partial(self._client.hget, meta, "window_ms")
        value: Any = until_done(ask, self._stop, self._outage)
        if value is None:
            raise LogAway(f"{meta} does not say window_ms, the length of windows")
        return int(value)

    def _store(
        self,
        copy: LogCopy[Any],
        build: Callable[[Any], StoredTables | StoredBars | StoredStatuses],
        run: Sequence[Logged],
    ) -> None:
        segment = segment_of(run)
        if copy.has(segment):
            return
        tables = build(run)
        # Joining may have waited for long.
        self._check_fence()
        self._in_sink(partial(self._sink.store, segment, tables))
        gaps = copy.took(segment)
        for gap in gaps:
            log.warning("a gap in the archive", kind=gap.kind, gap=gap.text)
            self._state = replace(self._state, last_gap=gap.text)
        more = getattr(tables, copy.product).num_rows, len(gaps), missing_in(gaps)
        counts = dict(zip(_COUNTS[copy.product], more, strict=True))
        changed: dict[str, Any] = {
            name: getattr(self._state, name) + count for name, count in counts.items()
        }
        if isinstance(tables, StoredTables):
            changed |= self._joined(tables)
        self._state = replace(self._state, **changed, **self._position())

    def _joined(self, tables: StoredTables) -> dict[str, Any]:
        """Note with which table windows were joined that are stored; count their rows.

        Not before: what is tried again is joined, and says who was delisted, again.
        """
        self._joined_with = max(tables.version, self._joined_with or 0)
        state = self._state
        names = dict.fromkeys((*tables.unknown, *state.unknown))
        return {
            "rows": state.rows + tables.rows.num_rows,
            "unknown_instrument": state.unknown_instrument + tables.unknown_rows,
            "unknown": tuple(names)[:MOST_UNKNOWN],
        }

    def _build(self, run: Sequence[LoggedWindow]) -> StoredTables:
        window_ms = self._window_ms()
        while True:
            try:
                self._versions.follow()
                versions = [
                    self._versions.version_at(window.published_us // 1_000)
                    if window.instruments is None
                    else window.instruments
                    for window in run
                ]
                before, table_at = self._version_before(), self._versions.at
                tables = build_tables(run, versions, table_at, window_ms, before)
            except TableAway as error:
                self._table_outage.failed("archive", error)
                pause(_ASK_AGAIN_S * 5, self._stop)
            else:
                self._table_outage.answered("archive")
                return tables

    def _version_before(self) -> int | None:
        """Return with which instrument table the window before was joined.

        After a start, with that of its end or a later one.
        """
        last = self._windows.last
        if self._joined_with is None and last is not None:
            return self._versions.version_at(last.last_ms)
        return self._joined_with

    def _until_stored(self, call: Callable[[], T]) -> T:
        """Call until it succeeds; what may pass is waited for, and told."""
        while True:
            try:
                result = call()
            except (OSError, LogAway) as error:
                if isinstance(error, redis.RedisError):
                    raise
                self._check_fence()
                self._sink_outage.failed("archive", error)
                self._say_problem(str(error) or repr(error))
                pause(_ASK_AGAIN_S * 5, self._stop)
            else:
                self._sink_outage.answered("archive")
                if self._state.problem is not None:
                    self._state = replace(self._state, problem=None)
                return result

    def _in_sink(self, call: Callable[[], T]) -> T:
        """Ask what windows are stored in; that it does not answer is told."""
        with watched(SILENT_S, self._say_silent):
            return call()

    def _say_silent(self, silent_s: float) -> None:
        where = self._state.destination
        error = TimeoutError(f"{where} has not answered for {silent_s:.0f} s")
        self._sink_outage.failed("archive", error)
        self._say_problem(str(error))
        if self._stop.is_set():
            # It is stored after the next start.
            self._sink.interrupt()

    def _say_problem(self, problem: str) -> None:
        self._state = replace(self._state, problem=problem)
        self._tell()

    def _tell(self) -> None:
        """Say how far the archive is; nothing depends on it."""
        tidier = self._tidier
        self._state = replace(
            self._state,
            tidy_failures=tidier.failures,
            tidy_problem=tidier.problem,
            updated_ms=time.time_ns() // 1_000_000,
        )
        self._metrics.show(self._state)
        with suppress(redis.RedisError):
            key = OtherKeys(self._keys.namespace).archives
            self._client.hset(key, self._name, self._state.encode())
        self._at_step("told")


def missing_in(gaps: Sequence[ArchiveGap]) -> int:
    """Return how many entries of a log are missing for good, as far as is known."""
    return sum(gap.windows or 0 for gap in gaps if gap.kind in ("trimmed", "epoch"))
