"""Entries of a log that follow each other, and the segment they make. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

from archive.contract.segment import Segment, day_of


class Logged(Protocol):
    """An entry of a log that is archived: a window, or bars.

    ``offset`` is its number in its ``epoch``. ``first_ms`` and ``last_ms`` are the
    earliest and the latest end of what it holds, of one day.
    """

    @property
    def epoch(self) -> str: ...

    @property
    def offset(self) -> int: ...

    @property
    def published_us(self) -> int: ...

    @property
    def first_ms(self) -> int: ...

    @property
    def last_ms(self) -> int: ...

    @property
    def size_bytes(self) -> int: ...


L = TypeVar("L", bound=Logged)


def runs_of(entries: Iterable[L]) -> Iterator[list[L]]:
    """Yield entries that follow each other, of one epoch and day."""
    run: list[L] = []
    for entry in entries:
        if run and not _is_next(run[-1], entry):
            yield run
            run = []
        run.append(entry)
    if run:
        yield run


def segment_of(run: Sequence[Logged]) -> Segment:
    """Return the segment of entries that follow each other."""
    first, last = run[0], run[-1]
    ends = (
        min(entry.first_ms for entry in run),
        max(entry.last_ms for entry in run),
    )
    published_ms = first.published_us // 1_000
    return Segment(published_ms, first.offset, last.offset, first.epoch, *ends)


def _is_next(before: Logged, after: Logged) -> bool:
    return (
        before.epoch == after.epoch
        and before.offset + 1 == after.offset
        and day_of(before.last_ms) == day_of(after.first_ms)
    )
