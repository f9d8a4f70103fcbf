"""What an archive does not have, and why: found by the names of its segments. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from archive.contract.segment import Segment

GapKind = Literal["before", "trimmed", "epoch", "taken_back"]


@dataclass(frozen=True, slots=True)
class ArchiveGap:
    """A place between two stored windows where there should be more, or less.

    ``windows`` is how many are missing, None where nobody knows. They were published
    after the window that ended at ``after_ms`` and before the one of ``before_ms``.
    """

    kind: GapKind
    epoch: str
    windows: int | None
    after_ms: int | None
    before_ms: int

    @property
    def text(self) -> str:
        """Say it in a sentence."""
        match self.kind:
            case "before":
                return (
                    f"{self.windows:,} windows of epoch {self.epoch} before "
                    f"{self.before_ms} are not kept: published before the archive "
                    "began, or gone with the oldest days"
                )
            case "trimmed":
                return (
                    f"{self.windows:,} windows of epoch {self.epoch} between "
                    f"{self.after_ms} and {self.before_ms} are missing: the window "
                    "log had lost them before they were stored"
                )
            case "epoch":
                count = "some" if self.windows is None else f"{self.windows:,}"
                return (
                    f"epoch {self.epoch} begins between {self.after_ms} and "
                    f"{self.before_ms}; {count} windows may be missing before it"
                )
            case "taken_back":
                return (
                    f"{self.windows:,} windows before {self.before_ms} were published "
                    f"again in epoch {self.epoch}: Redis had come back older than it "
                    "was. Both are kept"
                )


def find_gaps(segments: Iterable[Segment]) -> list[ArchiveGap]:
    """Return the gaps of an archive with these segments, oldest first."""
    ordered = sorted(segments)
    gaps = [*_of_the_first(ordered[:1])]
    for before, after in pairwise(ordered):
        gap = _between(before, after)
        if gap is not None:
            gaps.append(gap)
    return gaps


def _of_the_first(first: list[Segment]) -> Iterator[ArchiveGap]:
    for segment in first:
        if segment.first > 1:
            missing = segment.first - 1
            yield ArchiveGap("before", segment.epoch, missing, None, segment.first_ms)


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
