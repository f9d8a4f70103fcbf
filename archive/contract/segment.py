"""A segment: windows that follow each other, stored in one step. Pure.

Its name says which: ``<published_ms>_<epoch>_<first>-<last>_<first_ms>-<last_ms>``,
the offsets and the ends of its windows. Of bars it holds entries of the bar log in the
same way: their numbers, and the ends of their bars; of statuses their numbers, and the
ends of the milliseconds in which they were taken. So what an archive holds is known
by its names alone, and a segment that is there is there as a whole.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Literal, TypeVar

T = TypeVar("T")

Product = Literal["windows", "bars", "statuses"]
"""What an archive keeps."""

_NAME = re.compile(r"(\d{1,16})_([A-Za-z0-9-]{1,64})_(\d+)-(\d+)_(\d+)-(\d+)", re.ASCII)
_EPOCH_FORM = re.compile(r"[A-Za-z0-9-]{1,64}", re.ASCII)
_DAY_MS = 86_400_000


class BadEpoch(ValueError):
    """A name of an epoch that no file can have."""


@dataclass(frozen=True, slots=True, order=True)
class Segment:
    """Windows ``first`` to ``last`` of an epoch; in the order of publication.

    ``published_ms`` is when the first was published, ``first_ms`` and ``last_ms`` are
    the earliest and the latest end of a window.
    """

    published_ms: int
    first: int
    last: int
    epoch: str
    first_ms: int
    last_ms: int

    @property
    def name(self) -> str:
        """Its name; ``parse`` gives back an equal one."""
        offsets, ends = f"{self.first}-{self.last}", f"{self.first_ms}-{self.last_ms}"
        return f"{self.published_ms}_{self.epoch}_{offsets}_{ends}"

    @property
    def windows(self) -> int:
        return self.last - self.first + 1

    @classmethod
    def parse(cls, name: str) -> "Segment | None":
        """Return the segment of a name, None for another name."""
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        published, epoch, *numbers = match.groups()
        first, last, first_ms, last_ms = map(int, numbers)
        if last < first or last_ms < first_ms:
            return None
        return cls(int(published), first, last, epoch, first_ms, last_ms)

    def join(self, later: "Segment") -> "Segment":
        """Return the segment that holds both; the later one follows this one."""
        ends = (
            min(self.first_ms, later.first_ms),
            max(self.last_ms, later.last_ms),
        )
        return Segment(self.published_ms, self.first, later.last, self.epoch, *ends)

    def without(self, others: Iterable["Segment"]) -> "list[Segment]":
        """Return what of it none of the others holds, each with all of its times."""
        pieces = [(self.first, self.last)]
        for other in others:
            if other.epoch == self.epoch:
                pieces = [
                    (first, last)
                    for begin, end in pieces
                    for first, last in (
                        (begin, min(end, other.first - 1)),
                        (max(begin, other.last + 1), end),
                    )
                    if first <= last
                ]
        return [replace(self, first=first, last=last) for first, last in pieces]

    def is_followed_by(self, later: "Segment") -> bool:
        """Tell whether nothing was published between the two."""
        return self.epoch == later.epoch and self.last + 1 == later.first


def in_runs(items: Iterable[T], is_next: Callable[[T, T], bool]) -> Iterator[list[T]]:
    """Yield items that follow each other, as ``is_next`` says of each and the next."""
    run: list[T] = []
    for item in items:
        if run and not is_next(run[-1], item):
            yield run
            run = []
        run.append(item)
    if run:
        yield run


def check_epoch(epoch: str) -> str:
    """Return the name of an epoch if it can be in a segment's. Raises BadEpoch."""
    if not _EPOCH_FORM.fullmatch(epoch):
        raise BadEpoch(
            f"epoch {epoch[:80]!r}: must be 1 to 64 letters, digits and hyphens"
        )
    return epoch


def day_of(window_ms: int) -> date:
    """Return the day, in UTC, of a window or bar that ends then.

    It is that of its last millisecond: what ends at midnight is of the day before, in
    which all of it lies. In SQL, ``tickthrottle_day`` says the same (``schema.sql``).
    """
    return datetime.fromtimestamp((window_ms - 1) // 1_000, UTC).date()


def span_of(day: date) -> tuple[int, int]:
    """Return the earliest and the latest end of a window of a day, ms since 1970."""
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    begin_ms = round(midnight.timestamp()) * 1_000
    return begin_ms + 1, begin_ms + _DAY_MS


class Coverage:
    """Which windows are stored: runs of offsets without a hole, by their epochs."""

    def __init__(self, segments: Iterable[Segment] = ()) -> None:
        self._runs: dict[str, list[tuple[int, int]]] = {}
        for segment in sorted(segments, key=lambda s: (s.epoch, s.first)):
            self.add(segment.epoch, segment.first, segment.last)

    def add(self, epoch: str, first: int, last: int) -> None:
        """Take in windows that are stored from now on."""
        runs = self._runs.setdefault(epoch, [])
        if runs and runs[-1][0] <= first <= runs[-1][1] + 1:
            runs[-1] = runs[-1][0], max(last, runs[-1][1])
        else:
            runs.append((first, last))

    def has(self, epoch: str, offset: int) -> bool:
        runs = self._runs.get(epoch, ())
        return any(first <= offset <= last for first, last in runs)

    def ends(self) -> Iterator[tuple[str, int]]:
        for epoch, runs in self._runs.items():
            yield epoch, max(last for _, last in runs)
