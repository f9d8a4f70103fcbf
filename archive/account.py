"""Is every published window stored? The window log against an archive. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta

from archive.contract.archive_gap import ArchiveGap
from archive.contract.segment import Segment, day_of
from throttle.contract.ledger import BatchEntry
from throttle.contract.snapshot import WindowSnapshot

Place = tuple[str, int]
"""An epoch and an offset."""


@dataclass(frozen=True, slots=True)
class WindowRows:
    """The end of a window, and how many rows it has."""

    window: int
    rows: int


@dataclass(frozen=True, slots=True)
class StoredDay:
    """The windows of a day that are stored, with their rows counted one by one.

    ``told`` is how many rows the archive says that each of them has.
    """

    windows: Mapping[Place, WindowRows]
    told: Mapping[Place, int]


@dataclass(slots=True)
class DayAccount:
    """A day: windows and rows of the log, those of them that are stored, and all."""

    published_windows: int = 0
    stored_windows: int = 0
    waiting_windows: int = 0
    published_rows: int = 0
    stored_rows: int = 0
    kept_windows: int = 0
    kept_rows: int = 0


@dataclass(slots=True)
class ArchiveAccount:
    """What the comparison found, by day; ``problems`` are the differences.

    ``stored`` are those windows of the log that are stored.
    """

    days: dict[date, DayAccount] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    stored: dict[Place, WindowRows] = field(default_factory=dict)

    @property
    def is_right(self) -> bool:
        """Whether there is no difference."""
        return not self.problems


def account_for(
    log: Mapping[Place, WindowRows],
    stored: Iterable[StoredDay],
    gaps: Sequence[ArchiveGap] = (),
) -> ArchiveAccount:
    """Compare the windows of the log with those that are stored, a day at a time.

    Windows of the log behind the newest stored one wait; others that are missing are a
    difference. Of a day that was looked at, only what the log has is remembered.
    """
    found = ArchiveAccount()
    days: defaultdict[date, DayAccount] = defaultdict(DayAccount)
    for stored_day in stored:
        for place, kept in stored_day.windows.items():
            day = days[day_of(kept.window)]
            day.kept_windows += 1
            day.kept_rows += kept.rows
            found.problems += _miscounted(place, kept, stored_day.told.get(place))
            if place in log:
                found.stored[place] = kept
    stored_at = [n for n, place in enumerate(log) if place in found.stored]
    newest = stored_at[-1] if stored_at else -1
    for number, (place, window) in enumerate(log.items()):
        day = days[day_of(window.window)]
        kept_window = found.stored.get(place)
        if kept_window is not None:
            day.published_windows += 1
            day.published_rows += window.rows
            day.stored_windows += 1
            day.stored_rows += kept_window.rows
            found.problems += _differences(place, window, kept_window)
        elif number > newest:
            day.published_windows += 1
            day.waiting_windows += 1
        elif number > stored_at[0]:
            # Before that, the archive began later, or has removed it.
            day.published_windows += 1
            day.published_rows += window.rows
            epoch, offset = place
            found.problems.append(f"offset {offset} of epoch {epoch}: is not stored")
    found.days = dict(sorted(days.items()))
    for gap in gaps:
        # What was never there, or went with its day, is no difference.
        (found.problems if gap.is_damage else found.notes).append(gap.text)
    return found


def _miscounted(place: Place, kept: WindowRows, told: int | None) -> Iterable[str]:
    epoch, offset = place
    if told != kept.rows:
        yield (
            f"offset {offset} of epoch {epoch}: {kept.rows:,} rows are stored, "
            f"the window has {told}"
        )


def _differences(place: Place, window: WindowRows, kept: WindowRows) -> Iterable[str]:
    epoch, offset = place
    if window.rows != kept.rows:
        yield (
            f"offset {offset} of epoch {epoch}: {window.rows:,} rows were published, "
            f"{kept.rows:,} are stored"
        )


def rows_of_log(windows: Iterable[WindowSnapshot]) -> dict[Place, WindowRows]:
    """Count the rows of published windows."""
    return {(s.epoch, s.offset): WindowRows(s.window, len(s.rows)) for s in windows}


def stored_day(
    windows: Iterable[tuple[Place, int, int]], rows: Iterable[tuple[Place, int]]
) -> StoredDay:
    """Put together a day: windows with their end and what is said of their rows.

    ``rows`` are counts by window; none is a count of 0.
    """
    counts = dict(rows)
    told = {place: (end_ms, count) for place, end_ms, count in windows}
    return StoredDay(
        {
            place: WindowRows(end, counts.get(place, 0))
            for place, (end, _) in told.items()
        },
        {place: count for place, (_, count) in told.items()},
    )


def days_of(segments: Iterable[Segment]) -> list[date]:
    """Return the days of which there are windows, oldest first."""
    days = set()
    for segment in segments:
        day, last = day_of(segment.first_ms), day_of(segment.last_ms)
        while day <= last:
            days.add(day)
            day += timedelta(days=1)
    return sorted(days)


def batch_differences(
    job: str,
    batches: Iterable[BatchEntry],
    log: Iterable[Place],
    stored: Mapping[Place, WindowRows],
) -> Iterable[str]:
    """Hold the books of recorded batches to what is stored of their windows.

    Only where all windows of a batch are stored, and over all partitions together: a
    row does not say which one it came from, and no rule does that holds for every log.
    Books have news by the row, and of rows that restate the trades, stale or not for
    the last price: one or more a row. They may be in a row of news, too.
    """
    places = {offset: (epoch, offset) for epoch, offset in log}
    for batch in batches:
        offsets = range(batch.offset - batch.windows + 1, batch.offset + 1)
        kept = [stored.get(places.get(offset, ("", offset))) for offset in offsets]
        rows = sum(window.rows for window in kept if window is not None)
        news = sum(books.published for books in batch.partitions)
        others = sum(books.stale + books.not_last for books in batch.partitions)
        if None not in kept and not news <= rows <= news + others:
            yield (
                f"job {job}, batch {batch.offset}: {news:,} rows of news were "
                f"published, {others:,} at most that restate; {rows:,} are stored"
            )
