"""Is every published window and bar stored? The logs against an archive. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Generic, TypeVar

from archive.contract.archive_gap import ArchiveGap
from archive.contract.segment import Coverage, Segment, day_of
from throttle.contract.bars import Bar
from throttle.contract.ledger import BatchEntry
from throttle.contract.snapshot import WindowSnapshot

Place = tuple[str, int]
"""An epoch and an offset."""

BarKey = tuple[str, int, int]
"""An ISIN, the start of a bar, and how long it is, ms."""

Edition = tuple[int, int]
"""Which of two states of a bar is newer: ``Bar.edition``."""

RowCount = tuple[Place, int | None, int]
"""A window, a partition of a topic, and how many of the window's rows are in it.

Files and databases have no partitions: None.
"""

DayAndPartition = tuple[date, int]

DayAndWidth = tuple[date, int]
"""A day, and how long its bars are, ms."""

K = TypeVar("K")
C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class WindowRows:
    """The end of a window, and how many rows it has."""

    window: int
    rows: int


StoredDay = Mapping[Place, tuple[WindowRows, int]]
"""The windows of a day that are stored, with their rows counted one by one, and with
how many the archive says that each has.
"""


@dataclass(slots=True)
class WindowCounts:
    """A day: windows and rows of the log, those of them that are stored, and all."""

    published_windows: int = 0
    stored_windows: int = 0
    waiting_windows: int = 0
    published_rows: int = 0
    stored_rows: int = 0
    kept_windows: int = 0
    kept_rows: int = 0


@dataclass(slots=True)
class PartitionCounts:
    """A day in a partition of a topic: windows that have rows there, and the rows."""

    windows: int = 0
    rows: int = 0


@dataclass(slots=True)
class BarCounts:
    """Bars of a day and a width: in the log, those of them that are stored, and all."""

    logged_bars: int = 0
    stored_bars: int = 0
    waiting_bars: int = 0
    kept_bars: int = 0


@dataclass(slots=True)
class Account(Generic[K, C]):
    """What a comparison found, by day; ``problems`` are the differences."""

    days: dict[K, C] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def is_right(self) -> bool:
        return not self.problems

    def add_gaps(self, gaps: Iterable[ArchiveGap]) -> None:
        """Take in gaps: what was never there, or went with its day, is a note."""
        for gap in gaps:
            (self.problems if gap.is_damage else self.notes).append(gap.text)


@dataclass(slots=True)
class WindowAccount(Account[date, WindowCounts]):
    """The account of windows; ``stored`` are those of the log that are stored.

    ``partitions`` has what is in a topic, by day and partition.
    """

    stored: dict[Place, WindowRows] = field(default_factory=dict)
    partitions: dict[DayAndPartition, PartitionCounts] = field(default_factory=dict)


BarAccount = Account[DayAndWidth, BarCounts]


def account_for(
    log: Mapping[Place, WindowRows],
    stored: Iterable[StoredDay],
    gaps: Sequence[ArchiveGap] = (),
) -> WindowAccount:
    """Compare the windows of the log with those that are stored, a day at a time.

    Windows of the log behind the newest stored one wait; others that are missing are a
    difference. Of a day that was looked at, only what the log has is remembered.
    """
    account = WindowAccount()
    days: defaultdict[date, WindowCounts] = defaultdict(WindowCounts)
    for stored_windows in stored:
        for place, (kept, told) in stored_windows.items():
            day = days[day_of(kept.window)]
            day.kept_windows += 1
            day.kept_rows += kept.rows
            if told != kept.rows:
                account.problems.append(
                    f"{_name(place)}: {kept.rows:,} rows are stored, "
                    f"the window has {told}"
                )
            if place in log:
                account.stored[place] = kept
    stored_at = [n for n, place in enumerate(log) if place in account.stored]
    newest = stored_at[-1] if stored_at else -1
    for number, (place, window) in enumerate(log.items()):
        day = days[day_of(window.window)]
        if (kept_window := account.stored.get(place)) is not None:
            day.published_windows += 1
            day.published_rows += window.rows
            day.stored_windows += 1
            day.stored_rows += kept_window.rows
            if window.rows != kept_window.rows:
                account.problems.append(
                    f"{_name(place)}: {window.rows:,} rows were published, "
                    f"{kept_window.rows:,} are stored"
                )
        elif number > newest:
            day.published_windows += 1
            day.waiting_windows += 1
        elif number > stored_at[0]:
            # Before that, the archive began later, or has removed it.
            day.published_windows += 1
            day.published_rows += window.rows
            account.problems.append(f"{_name(place)}: is not stored")
    account.days = dict(sorted(days.items()))
    for date_, day in account.days.items():
        due = day.published_windows - day.waiting_windows, day.published_rows
        if due != (kept_there := (day.stored_windows, day.stored_rows)):
            account.problems.append(
                "{}: {:,} windows with {:,} rows were published, {:,} with {:,} are "
                "stored".format(date_, *due, *kept_there)
            )
    account.add_gaps(gaps)
    return account


def _name(place: Place) -> str:
    epoch, offset = place
    return f"offset {offset} of epoch {epoch}"


def unstored_statuses(log: Iterable[Place], coverage: Coverage) -> Iterable[str]:
    """Name statuses of the log that are not stored, among those that are.

    Later ones wait; earlier ones were taken before the archive began.
    """
    places = list(log)
    stored_at = [n for n, place in enumerate(places) if coverage.has(*place)]
    among = places[stored_at[0] : stored_at[-1]] if stored_at else []
    for epoch, number in among:
        if not coverage.has(epoch, number):
            yield f"status {number} of epoch {epoch}: is not stored"


def rows_of_log(windows: Iterable[WindowSnapshot]) -> dict[Place, WindowRows]:
    return {(s.epoch, s.offset): WindowRows(s.window, len(s.rows)) for s in windows}


def stored_day(
    windows: Iterable[tuple[Place, int, int]], rows: Iterable[RowCount]
) -> StoredDay:
    """Put together a day: windows with their end and what is said of their rows.

    A window without a count has 0 rows.
    """
    counts = Counter[Place]()
    for place, _, count in rows:
        counts[place] += count
    return {
        place: (WindowRows(end_ms, counts[place]), told)
        for place, end_ms, told in windows
    }


def partition_counts(
    rows: Iterable[RowCount], stored: StoredDay
) -> dict[DayAndPartition, PartitionCounts]:
    """Count what is in each partition of a topic, of windows that are stored."""
    found: defaultdict[DayAndPartition, PartitionCounts]
    found = defaultdict(PartitionCounts)
    for place, partition, count in rows:
        # Rows of a window that came between two looks wait for the next count.
        if partition is not None and place in stored:
            counts = found[day_of(stored[place][0].window), partition]
            counts.windows += 1
            counts.rows += count
    return dict(sorted(found.items()))


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
    series: int = 0,
) -> Iterable[str]:
    """Hold the books of recorded batches to what is stored of their windows.

    Only where all windows of a batch are stored, and over all partitions together: a
    row does not say which one it came from, and no rule does that holds for every log.
    Books have news by the row, and of rows that restate the trades, stale or not for
    the last price: one or more a row. They may be in a row of news, too. A trade that
    is taken back restates a row of its instrument, and of each of so many ``series``.
    """
    places = {offset: (epoch, offset) for epoch, offset in log}
    for batch in batches:
        offsets = range(batch.offset - batch.windows + 1, batch.offset + 1)
        kept = [stored.get(places.get(offset, ("", offset))) for offset in offsets]
        rows = sum(window.rows for window in kept if window is not None)
        total = batch.total
        news = total.published
        others = total.stale + total.not_last + total.taken_back * (1 + series)
        if None not in kept and not news <= rows <= news + others:
            yield (
                f"job {job}, batch {batch.offset}: {news:,} rows of news were "
                f"published, {others:,} at most that restate; {rows:,} are stored"
            )


@dataclass(frozen=True, slots=True)
class LoggedBatch:
    """An entry of the bar log: its epoch and number, and its bars."""

    epoch: str
    number: int
    bars: tuple[Bar, ...]


def account_for_bars(
    log: Iterable[LoggedBatch],
    coverage: Coverage,
    stored: Mapping[BarKey, Edition],
    kept: Mapping[DayAndWidth, int],
    gaps: Iterable[ArchiveGap] = (),
) -> BarAccount:
    """Compare the bars of the log with those that are stored, each once.

    ``stored`` has the edition of each stored bar, at least of those in the log;
    ``kept`` how many bars there are in all. Entries behind the newest stored one wait;
    others that are missing are a difference, but for those before the oldest one.
    """
    entries = list(log)
    is_there = [coverage.has(entry.epoch, entry.number) for entry in entries]
    newest = max((n for n, there in enumerate(is_there) if there), default=-1)
    oldest = is_there.index(True) if newest >= 0 else 0
    account = BarAccount()
    days: defaultdict[DayAndWidth, BarCounts] = defaultdict(BarCounts)
    due: dict[BarKey, Edition] = {}
    waiting: set[BarKey] = set()
    for n, entry in enumerate(entries):
        keys = {_key_of(bar): bar.edition for bar in entry.bars}
        if is_there[n]:
            for key, edition in keys.items():
                due[key] = max(edition, due.get(key, edition))
        elif n > newest:
            waiting |= keys.keys()
        elif n > oldest:
            account.problems.append(
                f"entry {entry.number} of epoch {entry.epoch} of the bar log: "
                "is not stored"
            )
    for key in waiting - due.keys():
        days[_day_and_width(key)].waiting_bars += 1
    for key, edition in due.items():
        counts = days[_day_and_width(key)]
        counts.logged_bars += 1
        if key in stored and stored[key] >= edition:
            counts.stored_bars += 1
        else:
            account.problems.append(_lacking(key, edition, stored.get(key)))
    for place, count in kept.items():
        days[place].kept_bars = count
    account.days = dict(sorted(days.items()))
    account.add_gaps(gaps)
    return account


def _key_of(bar: Bar) -> BarKey:
    return bar.isin, bar.start_ms, bar.end_ms - bar.start_ms


def _day_and_width(key: BarKey) -> DayAndWidth:
    _, start_ms, width_ms = key
    return day_of(start_ms + width_ms), width_ms


def _lacking(key: BarKey, published: Edition, stored: Edition | None) -> str:
    isin, start_ms, width_ms = key
    has = "it is not stored"
    if stored is not None:
        has = f"the stored one is {_words(stored)}"
    return (
        f"bar of {isin} that begins at {start_ms}, {width_ms} ms: it was published "
        f"as {_words(published)}, {has}"
    )


def _words(edition: Edition) -> str:
    revision, trades = edition
    return f"revision {revision:,} with {trades:,} trades"
