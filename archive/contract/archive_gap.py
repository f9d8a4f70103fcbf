"""What an archive does not have, and why: found by the names of its segments. Pure.

What is missing of bars is entries of the bar log: a batch has written each of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from archive.contract.segment import Product, Segment, day_of

GapKind = Literal["before", "trimmed", "epoch", "taken_back", "damaged"]

_UNITS: dict[Product, str] = {
    "windows": "windows",
    "bars": "batches of bars",
    "statuses": "statuses",
}
_LOGS: dict[Product, str] = {
    "windows": "window log",
    "bars": "bar log",
    "statuses": "status log",
}

_TEXTS: dict[GapKind, str] = {
    "before": "{unit} of epoch {epoch} before {before} are not kept: published before "
    "the archive began, or gone with the oldest days",
    "trimmed": "{unit} of epoch {epoch} between {after} and {before} are missing: the "
    "{log} had lost them before they were stored",
    "epoch": "epoch {epoch} begins between {after} and {before}; {unit} may be missing "
    "before it",
    "taken_back": "{unit} before {before} were published again in epoch {epoch}: Redis "
    "had come back older than it was. Both are kept",
    "damaged": "{unit} of epoch {epoch} before {before} cannot be read: their file is "
    "damaged",
}


@dataclass(frozen=True, slots=True)
class ArchiveGap:
    """A place between two stored windows where there should be more, or less.

    ``windows`` is how many are missing, None where nobody knows. They were published
    after the window that ended at ``after_ms`` and before the one of ``before_ms``. Of
    bars it is entries of the bar log, and ends of bars.
    """

    kind: GapKind
    epoch: str
    windows: int | None
    after_ms: int | None
    before_ms: int
    product: Product = "windows"

    @property
    def is_damage(self) -> bool:
        """Whether it was stored, and cannot be read."""
        return self.kind == "damaged"

    def is_within(self, first_ms: int, last_ms: int) -> bool:
        """Tell whether it touches the time between two ends."""
        return self.before_ms >= first_ms and (self.after_ms or 0) <= last_ms

    @property
    def text(self) -> str:
        count = "some" if self.windows is None else f"{self.windows:,}"
        return _TEXTS[self.kind].format(
            unit=f"{count} {_UNITS[self.product]}",
            epoch=self.epoch,
            after=self.after_ms,
            before=self.before_ms,
            log=_LOGS[self.product],
        )


def find_gaps(
    segments: Iterable[Segment],
    product: Product = "windows",
    damaged: Iterable[Segment] = (),
) -> list[ArchiveGap]:
    """Return the gaps of an archive with these segments, oldest first.

    ``damaged`` cannot be read: what of them is in no other segment is a gap. Bars of an
    earlier day may be amended between those of a later one. So once the earlier day is
    removed, the later one, now the oldest, has holes: that is no loss.
    """
    ordered, lost = sorted(segments), list[Segment]()
    for segment in sorted(damaged):
        lost += segment.without([*ordered, *lost])
    ordered = sorted([*ordered, *lost])
    gaps = [
        ArchiveGap("before", first.epoch, first.first - 1, None, first.first_ms)
        for first in ordered[:1]
        if first.first > 1
    ]
    is_cut = product == "bars" and bool(gaps)
    neighbours = [None, *ordered, None]
    for before, segment, after in zip(
        neighbours, ordered, neighbours[2:], strict=False
    ):
        if segment in lost:
            gaps.append(_of_damage(before, segment, after))
        gap = None if after is None else _between(segment, after)
        if gap is not None:
            is_oldest = day_of(segment.last_ms) == day_of(ordered[0].last_ms)
            if is_cut and is_oldest and gap.kind == "trimmed":
                gap = replace(gap, kind="before")
            gaps.append(gap)
    return [replace(gap, product=product) for gap in gaps]


def _of_damage(
    before: Segment | None, segment: Segment, after: Segment | None
) -> ArchiveGap:
    return ArchiveGap(
        "damaged",
        segment.epoch,
        segment.windows,
        None if before is None else before.last_ms,
        segment.last_ms if after is None else after.first_ms,
    )


def _between(before: Segment, after: Segment) -> ArchiveGap | None:
    ends = before.last_ms, after.first_ms
    missing = after.first - before.last - 1
    if before.epoch == after.epoch:
        return (
            ArchiveGap("trimmed", after.epoch, missing, *ends) if missing > 0 else None
        )
    if missing == 0:
        return None
    if missing > 0:
        return ArchiveGap("epoch", after.epoch, missing, *ends)
    if after.first > 1:
        return ArchiveGap("taken_back", after.epoch, -missing, *ends)
    # The stream was emptied: offsets begin anew, and what came after is gone.
    return ArchiveGap("epoch", after.epoch, None, *ends)
