"""Is every bar stored? The bar log against an archive. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date

from archive.contract.archive_gap import ArchiveGap
from archive.contract.segment import Coverage, day_of
from throttle.contract.bars import Bar

BarKey = tuple[str, int, int]
"""An ISIN, the start of a bar, and how long it is, ms."""

Edition = tuple[int, int]
"""Which of two states of a bar is newer: ``Bar.edition``."""

DayAndWidth = tuple[date, int]
"""A day, and how long its bars are, ms."""


@dataclass(frozen=True, slots=True)
class LoggedBatch:
    """An entry of the bar log: its epoch and number, and its bars."""

    epoch: str
    number: int
    bars: tuple[Bar, ...]


@dataclass(slots=True)
class BarCounts:
    """Bars of a day and a width: in the log, those of them that are stored, and all."""

    logged: int = 0
    stored: int = 0
    waiting: int = 0
    kept: int = 0


@dataclass(slots=True)
class BarAccount:
    """What the comparison found; ``problems`` are the differences."""

    days: dict[DayAndWidth, BarCounts] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def is_right(self) -> bool:
        """Whether there is no difference."""
        return not self.problems


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
    found = BarAccount()
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
            found.problems.append(
                f"entry {entry.number} of epoch {entry.epoch} of the bar log: "
                "is not stored"
            )
    for key in waiting - due.keys():
        _counts(found, key).waiting += 1
    for key, edition in due.items():
        counts = _counts(found, key)
        counts.logged += 1
        if key in stored and stored[key] >= edition:
            counts.stored += 1
        else:
            found.problems.append(_lacking(key, edition, stored.get(key)))
    for place, count in kept.items():
        found.days.setdefault(place, BarCounts()).kept = count
    found.days = dict(sorted(found.days.items()))
    for gap in gaps:
        # What was never there, or went with its day, is no difference.
        (found.problems if gap.is_damage else found.notes).append(gap.text)
    return found


def _key_of(bar: Bar) -> BarKey:
    return bar.isin, bar.start_ms, bar.end_ms - bar.start_ms


def _counts(found: BarAccount, key: BarKey) -> BarCounts:
    _, start_ms, width_ms = key
    place = day_of(start_ms + width_ms), width_ms
    return found.days.setdefault(place, BarCounts())


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
